"""The lists of the catalogue: what a column shows, how it sorts, what an export holds. Exports are in plain units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog import display, filters, selectors
from catalog.labels import source_words, tco_label
from core.exports import Column
from core.models import ExchangeRate
from core.money import trimmed

Cell = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """One column of the page: `sort` is a name the filter set knows; `kind` "num" aligns figures."""

    label: str | Promise
    cell: Cell
    kind: str = ""
    sort: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """One list: page, filters, order and export."""

    name: str  # of the export file
    title: str | Promise
    rows: Callable[[], QuerySet[Any]]
    filterset: type[Any]
    shown: tuple[Shown, ...]
    exported: tuple[Column[Any], ...]
    empty: str | Promise = field(
        default_factory=lambda: gettext_lazy("Nothing matches the filter.")
    )


def link(row: Any, text: str | None = None) -> SafeString:
    return format_html('<a href="{}">{}</a>', row.get_absolute_url(), text or str(row))


def _marked(row: Any, text: SafeString) -> SafeString:
    """`text` with the mark of a correction."""
    return format_html("{} {}", text, display.corrected()) if row.current.is_correction else text


def _two(first: Any, second: Any) -> SafeString:
    return format_html("{} <small>{}</small>", first, second)


def _rate(dtype: str) -> Cell:
    """Dense, with the marketing figure small beside it."""

    def cell(row: Any) -> Any:
        dense = row.current.peak_flops.get(dtype)
        marketing = row.current.marketing_flops.get(dtype)
        if dense is None:
            return None
        text = display.plain(dense / 1e12)
        if marketing is None:
            return text
        return format_html(
            '{} <small title="{}">({})</small>',
            text,
            _("marketing figure, with sparsity"),
            display.plain(marketing / 1e12, 1),
        )

    return cell


def _card(row: Any) -> SafeString:
    """A box to choose the card for a comparison, its name, maker and year."""
    box = format_html(
        '<input type="checkbox" name="card" value="{}" form="compare" aria-label="{}">',
        row.slug,
        _("Compare %(name)s") % {"name": row.name},
    )
    about = f"{row.vendor} · {row.year}" if row.year else row.vendor
    return format_html('{} {} <small class="muted">{}</small>', box, _marked(row, link(row)), about)


def _spec(name: str) -> Cell:
    return lambda row: getattr(row.current, name)


def _rate_of(figure: str, dtype: str) -> Cell:
    return lambda row: getattr(row.current, figure).get(dtype)


def _numbers(name: str) -> Cell:
    """One number as it is; a series as text."""

    def cell(row: Any) -> Any:
        value = getattr(row.current, name)
        return " / ".join(str(part) for part in value) if isinstance(value, list) else value

    return cell


def _provenance(of: Callable[[Any], Any]) -> tuple[Column[Any], ...]:
    """Source, date and confidence: in every export."""
    return (
        Column("source", lambda row: of(row).source),
        Column("source_url", lambda row: of(row).source_url),
        Column("as_of", lambda row: of(row).as_of),
        Column("as_of_precision", lambda row: of(row).as_of_precision),
        Column("confidence", lambda row: of(row).confidence),
        Column("notes", lambda row: of(row).notes),
    )


def _current(row: Any) -> Any:
    return row.current


ACCELERATORS = Listing(
    "accelerators",
    gettext_lazy("Accelerators"),
    selectors.accelerators,
    filters.AcceleratorFilter,
    (
        Shown(gettext_lazy("Name"), _card, "wrap", "name"),
        Shown(gettext_lazy("Memory, GB"), lambda row: display.plain(row.current.hbm_bytes / 1e9), "num", "memory"),
        Shown(
            gettext_lazy("Bandwidth, GB/s"),
            lambda row: row.current.hbm_bandwidth and display.plain(row.current.hbm_bandwidth / 1e9),
            "num",
            "bandwidth",
        ),
        Shown(gettext_lazy("BF16, TFLOPS"), _rate("bf16"), "num", "bf16"),
        Shown(gettext_lazy("FP8, TFLOPS"), _rate("fp8"), "num", "fp8"),
        Shown(
            gettext_lazy("Link, GB/s"),
            lambda row: row.current.link_bandwidth and display.plain(row.current.link_bandwidth / 1e9),
            "num",
            "link",
        ),
        Shown(
            gettext_lazy("Power, W"),
            lambda row: row.current.tdp and display.plain(row.current.tdp, 0),
            "num",
            "tdp",
        ),
        Shown(gettext_lazy("Confidence"), lambda row: display.confidence(row.current)),
    ),
    (
        Column("slug", lambda row: row.slug),
        Column("name", lambda row: row.name),
        Column("vendor", lambda row: row.vendor),
        Column("generation", lambda row: row.generation),
        Column("year", lambda row: row.year),
        Column("devices_per_board", lambda row: row.devices_per_board),
        Column("memory_bytes", _spec("hbm_bytes")),
        Column("memory_bandwidth_bytes_per_s", _spec("hbm_bandwidth")),
        *(
            Column(f"{dtype}_dense_flops", _rate_of("peak_flops", dtype))
            for dtype in display.DTYPES
        ),
        *(
            Column(f"{dtype}_marketing_flops", _rate_of("marketing_flops", dtype))
            for dtype in display.DTYPES[2:]
        ),
        Column("tdp_w", _spec("tdp")),
        Column("form_factor", _spec("form_factor")),
        Column("link", _spec("link_name")),
        Column("link_bandwidth_bytes_per_s", _spec("link_bandwidth")),
        Column("pcie_bandwidth_bytes_per_s", _spec("pcie_bandwidth")),
        Column("revision", _spec("number")),
        Column("stated_by", _spec("origin")),
        *_provenance(_current),
    ),
)  # fmt: skip

MODELS = Listing(
    "models",
    gettext_lazy("Models"),
    lambda: selectors.architectures().select_related("current__architecture"),
    filters.ModelFilter,
    (
        Shown(gettext_lazy("Name"), lambda row: _marked(row, link(row)), "nowrap", "name"),
        Shown(gettext_lazy("Family"), lambda row: row.family),
        Shown(gettext_lazy("Kind"), lambda row: row.get_kind_display()),
        Shown(gettext_lazy("Parameters"), lambda row: display.params(row.current.params_total), "num", "params"),
        Shown(gettext_lazy("Active"), lambda row: display.params(row.current.params_active), "num", "active"),
        Shown(gettext_lazy("Layers"), _spec("layers"), "num"),
        Shown(gettext_lazy("Context, tokens"), lambda row: display.tokens(row.current.max_context), "num", "context"),
        Shown(
            gettext_lazy("KV cache per token, FP16"), lambda row: display.kibibytes(row.current.kv_bytes_fp16), "num"
        ),
        Shown(gettext_lazy("Confidence"), lambda row: display.confidence(row.current)),
    ),
    (
        Column("slug", lambda row: row.slug),
        Column("name", lambda row: row.name),
        Column("family", lambda row: row.family),
        Column("kind", lambda row: row.kind),
        Column("licence", lambda row: row.licence),
        *(
            Column(name, _spec(name))
            for name in (
                "params_total", "params_active", "params_computed_total", "params_computed_active", "layers", "hidden",
                "heads", "kv_heads", "head_dim", "ffn", "vocab", "max_context", "sliding_window", "sliding_layers",
            )
        ),
        Column("kv_bytes_per_token_fp16", _spec("kv_bytes_fp16")),
        Column("kv_bytes_per_token_fp8", _spec("kv_bytes_fp8")),
        Column("revision", _spec("number")),
        Column("stated_by", _spec("origin")),
        *_provenance(_current),
    ),
)  # fmt: skip


def _money(amount: Any, currency: str) -> str:
    return f"{display.plain(amount, 4)} {currency}"


OFFERS = Listing(
    "offer-prices",
    gettext_lazy("Cloud offers"),
    selectors.offer_prices,
    filters.OfferPriceFilter,
    (
        Shown(gettext_lazy("Instance"), lambda row: row.offer.instance_type),
        Shown(gettext_lazy("Cloud"), lambda row: row.offer.cloud, sort="cloud"),
        Shown(gettext_lazy("Region"), lambda row: row.offer.region, "nowrap", "region"),
        Shown(
            gettext_lazy("Accelerator"),
            lambda row: format_html("{} × {}", row.offer.accelerator_count, link(row.offer.accelerator)),
            sort="accelerator",
        ),
        Shown(gettext_lazy("Price kind"), lambda row: row.get_kind_display()),
        Shown(
            gettext_lazy("Per accelerator-hour"),
            lambda row: _money(row.per_accelerator, row.currency),
            "num",
            "price",
        ),
        Shown(gettext_lazy("Per instance-hour"), lambda row: _money(row.amount, row.currency), "num"),
        Shown(gettext_lazy("As of"), lambda row: row.dated, "nowrap", "date"),
        Shown(
            gettext_lazy("Source"),
            lambda row: _two(source_words(row.source), row.quality) if row.quality else source_words(row.source),
            "wrap",
        ),
    ),
    (
        Column("cloud", lambda row: row.offer.cloud),
        Column("region", lambda row: row.offer.region),
        Column("instance_type", lambda row: row.offer.instance_type),
        Column("accelerator", lambda row: row.offer.accelerator.slug),
        Column("accelerator_count", lambda row: row.offer.accelerator_count),
        Column("vcpu", lambda row: row.offer.vcpu),
        Column("memory_gib", lambda row: row.offer.memory_gib),
        Column("whole_instance", lambda row: row.offer.complete),
        Column("kind", lambda row: row.kind),
        Column("term_months", lambda row: row.term_months or None),
        Column("price_per_instance_hour", lambda row: trimmed(row.amount)),
        Column("price_per_accelerator_hour", lambda row: trimmed(row.per_accelerator)),
        Column("currency", lambda row: row.currency),
        Column("caution", lambda row: row.quality),
        *_provenance(lambda row: row),
    ),
)  # fmt: skip


HARDWARE = Listing(
    "hardware-prices",
    gettext_lazy("Hardware prices"),
    selectors.hardware_prices,
    filters.HardwarePriceFilter,
    (
        Shown(gettext_lazy("Item"), lambda row: link(row.platform or row.accelerator)),
        Shown(
            gettext_lazy("Unit price"), lambda row: display.span_of_money(row.low, row.high, row.currency), "num"
        ),
        Shown(gettext_lazy("Condition"), lambda row: row.get_condition_display(), "nowrap"),
        Shown(gettext_lazy("Tax included"), lambda row: display.yes_no(row.tax_included)),
        Shown(gettext_lazy("As of"), lambda row: row.dated),
        Shown(gettext_lazy("Confidence"), display.confidence),
        Shown(gettext_lazy("Source"), lambda row: source_words(row.source), "wrap"),
    ),
    (
        Column("item", lambda row: (row.platform or row.accelerator).slug),
        Column("unit_price_low", lambda row: row.low),
        Column("unit_price_high", lambda row: row.high),
        Column("currency", lambda row: row.currency),
        Column("condition", lambda row: row.condition),
        Column("tax_included", lambda row: row.tax_included),
        *_provenance(lambda row: row),
    ),
)  # fmt: skip


LEASES = Listing(
    "leases",
    gettext_lazy("Leases"),
    selectors.leases,
    filters.LeaseFilter,
    (
        Shown(gettext_lazy("Lessor"), lambda row: row.lessor),
        Shown(gettext_lazy("Server platform"), lambda row: link(row.platform)),
        Shown(gettext_lazy("Server and month"), lambda row: _lease_money(row, row.monthly), "num"),
        Shown(gettext_lazy("Months"), lambda row: str(row.term_months), "num"),
        Shown(gettext_lazy("Deposit"), lambda row: _lease_money(row, row.deposit), "num"),
        Shown(gettext_lazy("To keep it"), lambda row: _lease_money(row, row.buyout), "num"),
        Shown(gettext_lazy("As of"), lambda row: row.dated),
        Shown(gettext_lazy("Valid until"), lambda row: row.valid_until.isoformat() if row.valid_until else "–"),
        Shown(gettext_lazy("Source"), lambda row: source_words(row.source), "wrap"),
    ),
    (
        Column("lessor", lambda row: row.lessor),
        Column("platform", lambda row: row.platform.slug),
        Column("monthly", lambda row: row.monthly),
        Column("term_months", lambda row: row.term_months),
        Column("deposit", lambda row: row.deposit),
        Column("buyout", lambda row: row.buyout),
        Column("currency", lambda row: row.currency),
        Column("valid_until", lambda row: row.valid_until),
        *_provenance(lambda row: row),
    ),
)  # fmt: skip


def _lease_money(row: Any, amount: Any) -> str:
    return "–" if amount is None else display.span_of_money(amount, amount, row.currency)


def _usual_power(row: Any) -> str | None:
    spec = row.current
    if spec.typical_power_low is None:
        return None
    if spec.typical_power_low == spec.typical_power_high:
        return display.kilowatts(spec.typical_power_low)
    return f"{display.plain(spec.typical_power_low / 1e3, 1)} – {display.kilowatts(spec.typical_power_high)}"


PLATFORMS = Listing(
    "server-platforms",
    gettext_lazy("Server platforms"),
    selectors.platforms,
    filters.PlatformFilter,
    (
        Shown(gettext_lazy("Name"), lambda row: _marked(row, link(row)), sort="name"),
        Shown(
            gettext_lazy("Accelerators"),
            lambda row: format_html("{} × {}", row.accelerator_count, link(row.accelerator)),
        ),
        Shown(gettext_lazy("Highest power"), lambda row: display.kilowatts(row.current.max_power), "num", "power"),
        Shown(gettext_lazy("Usual power"), _usual_power, "num"),
        Shown(gettext_lazy("Space"), lambda row: display.quantity(row.current.rack_units, 1, "U"), "num", "space"),
        Shown(gettext_lazy("Cooling"), _spec("cooling")),
        Shown(gettext_lazy("Fabric"), _spec("fabric")),
        Shown(gettext_lazy("Confidence"), lambda row: display.confidence(row.current)),
    ),
    (
        Column("slug", lambda row: row.slug),
        Column("name", lambda row: row.name),
        Column("accelerator", lambda row: row.accelerator.slug),
        Column("accelerator_count", lambda row: row.accelerator_count),
        Column("max_power_w", _spec("max_power")),
        Column("typical_power_low_w", _spec("typical_power_low")),
        Column("typical_power_high_w", _spec("typical_power_high")),
        Column("rack_units", _spec("rack_units")),
        Column("weight_kg", _spec("weight")),
        *(Column(name, _spec(name)) for name in ("power_supplies", "cooling", "fabric", "nics", "host")),
        Column("revision", _spec("number")),
        Column("stated_by", _spec("origin")),
        *_provenance(_current),
    ),
)  # fmt: skip


TCO = Listing(
    "cost-defaults",
    gettext_lazy("Cost defaults"),
    selectors.tco_defaults,
    filters.TcoFilter,
    (
        Shown(gettext_lazy("Parameter"), lambda row: _marked(row, link(row, tco_label(row.key))), "nowrap"),
        Shown(gettext_lazy("Low"), lambda row: display.series_ends(row.current.low), "num"),
        Shown(gettext_lazy("Default"), lambda row: display.series_ends(row.current.value), "num"),
        Shown(gettext_lazy("High"), lambda row: display.series_ends(row.current.high), "num"),
        Shown(gettext_lazy("Unit"), lambda row: "" if row.unit == "1" else row.unit),
        Shown(gettext_lazy("As of"), lambda row: row.current.dated, "nowrap"),
        Shown(gettext_lazy("Confidence"), lambda row: display.confidence(row.current)),
        Shown(gettext_lazy("Source"), lambda row: source_words(row.current.source), "wrap"),
    ),
    (
        Column("key", lambda row: row.key),
        Column("unit", lambda row: row.unit),
        *(
            Column(name, _numbers(name))
            for name in ("low", "value", "high")
        ),
        Column("revision", _spec("number")),
        Column("stated_by", _spec("origin")),
        *_provenance(_current),
    ),
)  # fmt: skip


RATES = Listing(
    "exchange-rates",
    gettext_lazy("Exchange rates"),
    lambda: ExchangeRate.objects.order_by("-as_of", "base", "quote"),
    filters.RateFilter,
    (
        Shown(gettext_lazy("One unit of"), lambda row: row.base),
        Shown(gettext_lazy("Costs"), lambda row: f"{display.plain(row.rate, 8)} {row.quote}", "num"),
        Shown(gettext_lazy("As of"), lambda row: f"{row.as_of:%Y-%m-%d}"),
        Shown(gettext_lazy("Source"), lambda row: source_words(row.source), "wrap"),
    ),
    (
        Column("base", lambda row: row.base),
        Column("quote", lambda row: row.quote),
        Column("rate", lambda row: trimmed(row.rate)),
        Column("as_of", lambda row: row.as_of),
        Column("source", lambda row: row.source),
    ),
)  # fmt: skip

TABS = (
    ("accelerator-list", ACCELERATORS.title),
    ("model-list", MODELS.title),
    ("offer-list", OFFERS.title),
    ("hardware-price-list", HARDWARE.title),
    ("lease-list", LEASES.title),
    ("platform-list", PLATFORMS.title),
    ("tco-list", TCO.title),
    ("rate-list", RATES.title),
)


def tabs(current: str) -> list[dict[str, Any]]:
    """The catalogue's parts, for components/tabs.html."""
    return [
        {"label": label, "url": reverse(name), "current": name == current, "count": ""}
        for name, label in TABS
    ]
