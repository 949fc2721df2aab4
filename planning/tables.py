"""What pages show of rows: labels, values in a reader's units, facts, differences, tiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.formats import date_format, number_format
from django.utils.translation import gettext, ngettext

from catalog.reference import accelerator_label, model_label
from core.errors import InputError
from core.messages import msg
from core.money import Money, trimmed
from core.templatetags.ui import money, percent, quantity, said, significant, span
from core.units import unit_words
from planning import workloads
from planning.models import Budget, CapacityRequest, PlanChoice, RequestRevision, Site
from planning.models.plans import PaymentChoice
from planning.models.requests import LatencyClass
from planning.places import residence_label
from planning.selectors.approvals import Difference
from planning.selectors.budgets import Balance
from planning.study import profiles
from planning.study.load_series import hours_of, is_week, peak_over_mean, requests_per_day
from planning.study.model import config_words
from planning.study_tables import tax_rate

_DECLARED: dict[
    str, workloads.Field
] = {}  # a name that several kinds have is called as the first of them calls it
for _fields in workloads.FIELDS.values():
    for _field in _fields:
        _DECLARED.setdefault(_field.name, _field)
_PLAN = {
    "plan.accelerator_slug": "accelerator_slug", "plan.cards": "cards", "plan.servers": "servers",
    "plan.mode": "mode", "plan.money": "amount",
}  # fmt: skip


def label(name: str) -> str:
    """The field's name in words: of a workload, of a revision, or of its plan (`plan.cards`)."""
    if name in _DECLARED:
        return _DECLARED[name].label.render(gettext)
    model: Any = (
        PlanChoice if name in _PLAN else CapacityRequest if name == "title" else RequestRevision
    )
    text = str(model._meta.get_field(_PLAN.get(name, name)).verbose_name)
    return text[:1].upper() + text[1:]


def value(name: str, shown: Any) -> str:
    """A field's value as a person reads it; empty when there is none."""
    if shown is None or shown == "":
        return ""
    if isinstance(shown, bool):
        return gettext("Yes") if shown else gettext("No")
    if name in _DECLARED:
        return _workload_value(_DECLARED[name], shown)
    if name == "checkpoint_seconds":
        return span(shown)
    if name == "accuracy_loss_limit":
        return percent(shown, 2)
    if name == "data_residence":
        return residence_label(shown)
    if name == "latency_class":
        return str(LatencyClass(shown).label)
    if name == "plan.accelerator_slug":
        return accelerator_label(shown)
    if name == "plan.mode":
        return str(PaymentChoice(shown).label)
    if name in ("need_by", "start"):
        return date_format(date.fromisoformat(shown) if isinstance(shown, str) else shown)
    if name == "duration_days":
        return ngettext("%(n)s day", "%(n)s days", shown) % {"n": shown}
    if isinstance(shown, Money):
        return money(shown)
    return str(shown)


def config_line(config: Any) -> str:
    """What was understood of a pasted config.json; of one that cannot be read only that it was pasted."""
    try:
        return said(config_words(config))
    except InputError:
        return gettext("As pasted")


def _workload_value(field: workloads.Field, shown: Any) -> str:
    if field.name == "model":
        return model_label(str(shown))
    if field.name == "accelerator":
        return accelerator_label(str(shown))
    if field.type == "choice":
        return next(
            (text.render(gettext) for code, text in field.choices if code == shown), str(shown)
        )
    if field.type == "share":
        return percent(shown, 1)
    if field.type == "config":
        return config_line(shown)
    if field.type == "series" and is_week(shown):
        day, hour = profiles.busiest(shown["values"])
        return gettext("busiest %(day)s %(hour)s:00, %(times)s times the mean") % {
            "day": date_format(date(2000, 1, 3 + day), "l"), "hour": hour,
            "times": significant(peak_over_mean(shown)),
        }  # fmt: skip
    if field.type == "months":
        month = max(range(len(shown)), key=lambda at: shown[at])
        return gettext("highest in %(month)s, %(times)s times the mean") % {
            "month": date_format(date(2000, month + 1, 1), "F"),
            "times": significant(profiles.peak_over_mean(shown)),
        }  # fmt: skip
    if field.type == "series":
        return gettext("%(hours)s hours from %(day)s, busiest hour %(peak)s times the mean") % {
            "hours": number_format(hours_of(shown), force_grouping=True),
            "day": date_format(date.fromisoformat(shown["start"][:10])),
            "peak": significant(peak_over_mean(shown)),
        }
    if isinstance(shown, float) and shown.is_integer():
        shown = int(shown)  # 40,000 hours, not 40,000.0
    if isinstance(shown, int | float) and field.unit:
        if abs(shown) >= 1e5 or field.unit == "B":
            return quantity(shown, field.unit)
        return f"{number_format(shown, force_grouping=True)} {unit_words(field.unit)}"
    if isinstance(shown, int | float):
        return number_format(shown, force_grouping=True)
    return str(shown)


def _assumed_value(field: workloads.Field, row: Mapping[str, Any]) -> str:
    """A value that nobody told, and where it comes from."""
    told = {"value": _workload_value(field, row["value"])}
    if row["origin"] == workloads.DERIVED:
        return gettext("%(value)s (from the hours of load)") % told
    return gettext("%(value)s (usual value, not told)") % told


def load_facts(series: Mapping[str, Any]) -> list[tuple[str, str]]:
    """An hourly load as facts: how long, from when, how sharp, from which file."""
    mean = requests_per_day(series)
    return [
        (gettext("Hours"), number_format(hours_of(series), force_grouping=True)),
        (gettext("From"), f"{series['start'][:16].replace('T', ' ')} {series['zone']}".strip()),
        (gettext("Busiest hour over the mean"), significant(peak_over_mean(series))),
        (gettext("Unit"), series["unit"] or gettext("not told")),
        *([] if mean is None else [(gettext("Requests per day"), number_format(round(mean), force_grouping=True))]),
        (gettext("File"), series["source"] or "–"),
    ]  # fmt: skip


def revision_facts(revision: RequestRevision) -> list[tuple[str, str]]:
    """What is asked for, as (label, value); what a kind does not ask is left out."""
    kind = revision.request.kind
    own = {
        field.name: field for field in workloads.FIELDS[kind]
    }  # one name may mean another thing elsewhere
    rows = [
        (own[name].label.render(gettext), _workload_value(own[name], shown))
        if name in own and not isinstance(shown, bool)
        else (label(name), value(name, shown))
        for name, shown in workloads.told_part(revision.workload).items()
    ]
    rows += [
        (own[name].label.render(gettext), _assumed_value(own[name], row))
        for name, row in workloads.assumed_part(revision.workload).items()
        if name in own
    ]
    left_out = {"workload", "justification"}
    if kind not in workloads.ASKS_INTERRUPTIBLE:
        left_out |= {"interruptible", "checkpoint_seconds"}
    if kind not in workloads.ASKS_LATENCY:
        left_out.add("latency_class")
    if kind not in workloads.ASKS_ACCURACY:
        left_out.add("accuracy_loss_limit")
    rows += [
        (label(name), value(name, getattr(revision, name)))
        for name in RequestRevision.CONTENT
        if name not in left_out
    ]
    return [(name, shown) for name, shown in rows if shown]


def plan_facts(plan: PlanChoice) -> list[tuple[str, str, str]]:
    """The chosen plan, as (label, value, note)."""
    rate = ""
    if plan.base_currency != plan.currency:
        rate = gettext("%(amount)s at %(rate)s, %(day)s") % {
            "amount": money(plan.base_money),
            "rate": number_format(trimmed(plan.rate)),
            "day": date_format(plan.rate_date),
        }
    cards = said(msg("%(n)s in %(servers)s servers", n=plan.cards, servers=plan.servers or "–"))
    return [
        (label("plan.accelerator_slug"), accelerator_label(plan.accelerator_slug), ""),
        (label("plan.cards"), cards if plan.servers else str(plan.cards), ""),
        (label("plan.mode"), str(plan.get_mode_display()), str(plan.get_spend_kind_display())),
        (label("plan.money"), money(plan.money), rate),
        *_tax_fact(plan),
    ]


def _tax_fact(plan: PlanChoice) -> list[tuple[str, str, str]]:
    """How much of the amount is tax, and whether it comes back."""
    tax = plan.tax
    if tax is None:
        return []
    told = plan.summary["tax"]
    back = gettext("reclaimed later") if told["reclaimed"] else gettext("not reclaimed")
    return [(gettext("Of which tax"), money(tax), f"{tax_rate(told['rate'])}, {back}")]


def difference_rows(differences: Iterable[Difference]) -> list[tuple[str, str, str]]:
    """Rows of components/diff_table.html."""
    return [
        (label(row.field), value(row.field, row.old), value(row.field, row.new))
        for row in differences
    ]


def conflict_rows(changes: Mapping[str, tuple[str, str]]) -> list[tuple[str, str, str]]:
    """(label, what you entered, what is stored now)."""
    known = {*_DECLARED, *RequestRevision.CONTENT, "title"}
    return [
        (label(name) if name in known else name, theirs, now)
        for name, (theirs, now) in changes.items()
    ]


def balance_tiles(balance: Balance) -> list[dict[str, Any]]:
    """The tiles of a budget, in its currency."""

    def tile(name: str, amount: Decimal, note: str = "", tone: str = "") -> dict[str, Any]:
        figure, unit = money(Money(amount, balance.currency)).rsplit(" ", 1)
        return {"label": name, "value": figure, "unit": unit, "note": note, "tone": tone}

    over = balance.after_requests < 0
    return [
        tile(gettext("Allotted"), balance.allotted),
        tile(gettext("Asked for"), balance.reserved, gettext("Submitted, not decided")),
        tile(gettext("Approved, not ordered"), balance.approved),
        tile(gettext("Ordered"), balance.committed),
        tile(gettext("Spent"), balance.actual),
        tile(
            gettext("Available"),
            balance.available,
            gettext("%(amount)s if everything asked for were approved")
            % {"amount": money(Money(balance.after_requests, balance.currency))},
            "bad" if balance.available < 0 else "warn" if over else "",
        ),
    ]


def balance_parts(balance: Balance) -> list[dict[str, Any]]:
    """Rows of the meters tag: each sum as a share of what was allotted."""
    rows = (
        ("actual", gettext("Spent")),
        ("committed", gettext("Ordered")),
        ("approved", gettext("Approved, not ordered")),
        ("reserved", gettext("Asked for")),
    )
    return [
        {
            "label": text,
            "value": balance.share(name),
            "note": money(getattr(balance, name), balance.currency),
            "tone": "bad" if (balance.share(name) or 0) > 1 else "",
        }
        for name, text in rows
    ]


def budget_row(budget: Budget, balance: Balance) -> dict[str, Any]:
    """A budget and its sums for a list."""
    return {"budget": budget, "balance": balance, "used": _used(balance)}


def _used(balance: Balance) -> float | None:
    if balance.allotted <= 0:
        return None
    return float(1 - balance.available / balance.allotted)


def site_row(site: Site) -> dict[str, Any]:
    """A machine room with what is free of what there is."""
    free = {
        "power": f"{significant(site.power_kw - site.used_power_kw)} / {significant(site.power_kw)} kW",
        "cooling": f"{significant(site.cooling_kw - site.used_cooling_kw)} / {significant(site.cooling_kw)} kW",
        "racks": f"{site.racks - site.used_racks} / {site.racks}",
        "rack": f"{significant(site.kw_per_rack)} kW",
    }
    return {
        "site": site,
        **free,
        "facts": [
            (gettext("Country"), site.country or "–"),
            (gettext("Free power"), free["power"]),
            (gettext("Free cooling"), free["cooling"]),
            (gettext("Free racks"), free["racks"]),
            (gettext("Power of one rack"), free["rack"]),
            (gettext("PUE"), "–" if site.pue is None else significant(site.pue)),
            (gettext("Liquid cooling"), gettext("Yes") if site.liquid_cooling else gettext("No")),
        ],
    }
