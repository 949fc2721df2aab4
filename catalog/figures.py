"""What the detail pages say of a revision: (label, value, note) triples, and how a correction differs."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from catalog import display
from catalog.models import AcceleratorSpec, ArchitectureSpec, PlatformSpec, TcoDefaultValue
from core.messages import msg
from core.templatetags.ui import said

Fact = tuple[str, Any, str]

# Names under which the files say that a figure was read again.
_READ = {"hbm_bytes": "memory", "hbm_bandwidth": "bandwidth", "tdp": "tdp"}


def _note(spec: Any, name: str) -> str:
    return _("read again in a second source") if _READ.get(name, name) in spec.read_fields else ""


def accelerator_facts(spec: AcceleratorSpec) -> list[Fact]:
    """Everything but the rates."""
    card = spec.accelerator
    link = display.bandwidth(spec.link_bandwidth)
    if spec.link_peers:
        link = said(
            msg("%(bandwidth)s, between %(cards)s cards", bandwidth=link, cards=spec.link_peers)
        )
    facts = [
        (_("Maker"), card.vendor, ""),
        (_("Architecture"), card.architecture, ""),
        (_("Year"), str(card.year or ""), ""),
        (_("Memory"), f"{display.gigabytes(spec.hbm_bytes)} {spec.memory_type}", _note(spec, "hbm_bytes")),
        (_("Memory bandwidth"), display.bandwidth(spec.hbm_bandwidth), _note(spec, "hbm_bandwidth")),
        (_("Thermal design power"), display.watts(spec.tdp), _note(spec, "tdp")),
        (_("Form factor"), spec.form_factor, ""),
        (_("Link"), spec.link_name or _("PCIe only"), ""),
        (_("Link bandwidth, both directions"), link, ""),
        (_("PCIe bandwidth, one direction"), display.bandwidth(spec.pcie_bandwidth), ""),
        (_("Partitions (MIG)"), spec.mig_instances, ""),
        (_("ECC"), display.yes_no(spec.ecc), ""),
        (_("Export rules"), spec.export_note, ""),
        (_("Also called"), ", ".join(card.aliases), ""),
    ]  # fmt: skip
    if card.devices_per_board > 1:
        facts.insert(
            0, (_("Devices on a board"), card.devices_per_board, _("figures are of one device"))
        )
    return facts


def rate_rows(spec: AcceleratorSpec) -> list[list[Any]]:
    """dtype, dense rate, marketing figure, ratio."""
    rows = []
    for dtype in display.DTYPES:
        dense, marketing = spec.peak_flops.get(dtype), spec.marketing_flops.get(dtype)
        if dense is None and marketing is None:
            continue
        rows.append(
            [
                dtype.upper(),
                display.rate(dense, dtype),
                None if marketing is None else display.rate(marketing, dtype),
                f"{display.plain(marketing / dense)} ×" if marketing and dense else None,
                _note(spec, dtype) or None,
            ]
        )
    return rows


def _head_width(spec: ArchitectureSpec) -> str:
    """Width of a head; of queries and values apart where they differ (latent attention)."""
    if spec.mla is None:
        return display.tokens(spec.head_dim)
    return _("%(query)s for queries, %(value)s for values") % {
        "query": spec.mla["nope_dim"] + spec.mla["rope_dim"], "value": spec.mla["v_dim"],
    }  # fmt: skip


def model_facts(spec: ArchitectureSpec) -> list[Fact]:
    model = spec.architecture
    number = display.tokens
    facts = [
        (_("Family"), model.family, ""),
        (_("Kind"), model.get_kind_display(), ""),
        (_("Licence of the weights"), model.licence, ""),
        (_("Layers"), number(spec.layers), _note(spec, "layers")),
        (_("Hidden size"), number(spec.hidden), _note(spec, "hidden")),
        (_("Attention heads"), number(spec.heads), _note(spec, "heads")),
        (_("Key/value heads"), number(spec.kv_heads), _note(spec, "kv_heads")),
        (_("Head width"), _head_width(spec), ""),
        (_("Feed-forward width"), number(spec.ffn), _note(spec, "ffn")),
        (_("Vocabulary"), number(spec.vocab), _note(spec, "vocab")),
        (_("Longest context"), _("%(n)s tokens") % {"n": number(spec.max_context)} if spec.max_context else None, ""),
        (_("Tied embeddings"), display.yes_no(spec.tied_embeddings), ""),
    ]  # fmt: skip
    if spec.sliding_window:
        text = _("%(layers)s of %(all)s layers, %(window)s tokens") % {
            "layers": spec.sliding_layers, "all": spec.layers, "window": number(spec.sliding_window),
        }  # fmt: skip
        facts.append((_("Attention window"), text, ""))
    if spec.moe:
        text = _("%(active)s of %(experts)s, width %(width)s") % {
            "active": spec.moe["top_k"], "experts": spec.moe["experts"], "width": number(spec.moe["expert_ffn"]),
        }  # fmt: skip
        facts.append((_("Experts per token"), text, ""))
    if spec.mla:
        text = _("latent %(latent)s, rotary %(rope)s") % {
            "latent": spec.mla["kv_latent"], "rope": spec.mla["rope_dim"],
        }  # fmt: skip
        facts.append((_("Latent attention (MLA)"), text, ""))
    if spec.image_size:
        facts.append((_("Image size"), f"{spec.image_size} px", ""))
    if spec.forward_gflop:
        facts.append(
            (_("Compute of a forward pass"), f"{display.plain(spec.forward_gflop)} GFLOP", "")
        )
    return facts


def memory_rows(spec: ArchitectureSpec) -> list[list[Any]]:
    """Context, KV cache of one request in FP16 and FP8. A window stops growing; constant parts are left out."""
    per_token = spec.kv_elements_per_token
    if per_token is None or not spec.layers:
        return []
    rows = []
    for context in (4_096, 32_768, 131_072):
        if spec.max_context and context > spec.max_context:
            continue
        share = 1.0
        if spec.sliding_window and context > spec.sliding_window:
            full = spec.layers - spec.sliding_layers
            share = (full + spec.sliding_layers * spec.sliding_window / context) / spec.layers
        elements = per_token * context * share
        rows.append(
            [display.tokens(context), display.quantity(2 * elements, 1e9, "GB"), display.quantity(elements, 1e9, "GB")]
        )  # fmt: skip
    return rows


def platform_facts(spec: PlatformSpec) -> list[Fact]:
    low, high = spec.typical_power_low, spec.typical_power_high
    usual = None
    if low is not None and high is not None:
        usual = (
            display.kilowatts(low)
            if low == high
            else f"{display.plain(low / 1e3, 1)} – {display.kilowatts(high)}"
        )
    return [
        (_("Highest power"), display.kilowatts(spec.max_power), ""),
        (_("Usual power"), usual, ""),
        (_("Rack units"), display.quantity(spec.rack_units, 1, "U"), ""),
        (_("Weight"), display.quantity(spec.weight, 1, "kg", 0), ""),
        (_("Power supplies"), spec.power_supplies, ""),
        (_("Cooling"), spec.cooling, ""),
        (_("Accelerator fabric"), spec.fabric, ""),
        (_("Network cards"), spec.nics, ""),
        (_("CPU and memory"), spec.host, ""),
    ]


def tco_facts(spec: TcoDefaultValue) -> list[Fact]:
    unit = "" if spec.default.unit == "1" else spec.default.unit
    return [
        (_("Low"), display.series(spec.low), unit),
        (_("Default"), display.series(spec.value), unit),
        (_("High"), display.series(spec.high), unit),
    ]


def rate_facts(spec: AcceleratorSpec) -> list[Fact]:
    return [
        (_("%(dtype)s dense") % {"dtype": dtype.upper()}, display.rate(spec.peak_flops.get(dtype), dtype), "")
        for dtype in display.DTYPES
        if dtype in spec.peak_flops
    ]  # fmt: skip


def differences(before: list[Fact], after: list[Fact]) -> list[tuple[str, Any, Any]]:
    """(label, shipped, current) where the two differ."""
    old, new = ({label: value for label, value, _note in facts} for facts in (before, after))
    return [
        (label, old.get(label), new.get(label))
        for label in dict.fromkeys([*old, *new])
        if old.get(label) != new.get(label)
    ]


def count_rows(spec: ArchitectureSpec) -> list[list[Any]]:
    """Published and computed parameters side by side."""
    pairs = (
        (_("All"), spec.params_total, spec.params_computed_total),
        (_("Per token"), spec.params_active, spec.params_computed_active),
    )
    return [
        [
            label,
            display.tokens(published),
            None if computed is None else display.tokens(computed),
            None if computed is None else f"{display.plain(100 * (computed / published - 1), 1)} %",
        ]
        for label, published, computed in pairs
    ]


def model_tiles(spec: ArchitectureSpec) -> list[dict[str, Any]]:
    """The figures people look for first."""
    tiles = [
        {"label": _("Parameters"), "value": display.params(spec.params_total)},
        {"label": _("Weights in FP16"), "value": display.gigabytes(spec.weight_bytes_fp16)},
    ]
    if spec.params_active != spec.params_total:
        tiles.insert(
            1, {"label": _("Parameters per token"), "value": display.params(spec.params_active)}
        )
    if spec.kv_bytes_fp16 is not None:
        tiles.append(
            {"label": _("KV cache per token, FP16"), "value": display.kibibytes(spec.kv_bytes_fp16)}
        )
        tiles.append(
            {"label": _("KV cache per token, FP8"), "value": display.kibibytes(spec.kv_bytes_fp8)}
        )
    return tiles
