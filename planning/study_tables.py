"""A study's stored result as what a page and a document show: cards, tables, charts, facts. Nothing is computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog.labels import source_words, tco_label
from catalog.reference import accelerator_label
from core import charts
from core.messages import Message
from core.money import WHOLE_FROM, Money
from core.templatetags.ui import exact, money, percent, quantity, said, significant, span
from planning.models.plans import PaymentChoice
from planning.study.labels import GRADES, SATURATIONS, figure_label, in_words, label
from planning.study.search.report import MAY_MISS

ROLES = {
    "cheapest": gettext_lazy("Cheapest"),
    "fastest": gettext_lazy("Fastest"),
    "safest": gettext_lazy("Safest"),
}
CODES = {
    "memory": gettext_lazy("Memory"), "time": gettext_lazy("Time or latency"), "price": gettext_lazy("Price"),
    "budget": gettext_lazy("Budget"), "lead_time": gettext_lazy("Lead time"), "region": gettext_lazy("Region"),
    "residence": gettext_lazy("Where the data may be"), "export": gettext_lazy("Export control"),
    "vendor": gettext_lazy("Maker"), "spot": gettext_lazy("Spot"), "accuracy": gettext_lazy("Accuracy"),
    "precision": gettext_lazy("Precision"), "layout": gettext_lazy("Layout"), "link": gettext_lazy("Cards per server"),
    "unpriced": gettext_lazy("No price"), "unsold": gettext_lazy("Not on offer"), "rate": gettext_lazy("Exchange rate"),
    "reliability": gettext_lazy("Failures"), "site": gettext_lazy("Room for it"),
    "size": gettext_lazy("Too large"),
}  # fmt: skip
INPUTS = {
    "price": gettext_lazy("Price"), "rate": gettext_lazy("Exchange rate"), "stock": gettext_lazy("Stock"),
    "economics": gettext_lazy("Cost defaults"), "estimator": gettext_lazy("Estimator"),
}  # fmt: skip
SORTS: dict[str, Any] = {
    "cost": lambda plan: Decimal(plan["cost"]),
    "time": lambda plan: plan["seconds"]["p50"],
    "cards": lambda plan: plan["cards"],
    "regret": lambda plan: plan["regret"]["p90"],
}


def mode_label(mode: str) -> str:
    """A way of paying in words."""
    return str(PaymentChoice(mode).label) if mode in PaymentChoice.values else mode


def amount(value: str | float | None, currency: str) -> str:
    """An estimated amount: from a thousand on in whole units. What is ordered, quoted or booked is said exactly."""
    if value is None:
        return "–"
    figure = Decimal(str(value))
    if abs(figure) < WHOLE_FROM:
        return money(Money(figure, currency))
    return f"{number_format(figure.quantize(Decimal(1)), force_grouping=True)} {currency}"


def _source(text: str) -> str:
    """A stored source, which may stand behind a rate: 1 USD = 7.2 CNY · the source."""
    return " · ".join(source_words(part) for part in text.split(" · "))


def day(text: str | None) -> str:
    """A stored day as people write it; what is no day stays as it is."""
    try:
        return date_format(date.fromisoformat(text)) if text else "–"
    except ValueError:
        return str(text)


def about(value: float, currency: str) -> str:
    """An estimated amount at three significant digits: more would say more than is known."""
    if not value:
        return amount("0", currency)
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = Decimal(str(round(value, digits)))
    if digits > 0:
        return amount(str(rounded), currency)
    return f"{number_format(rounded, decimal_pos=0, force_grouping=True)} {currency}"


def about_range(spread: Mapping[str, float], currency: str) -> str:
    """P10 to P90 of a cost."""
    return f"{about(spread['p10'], currency)} – {about(spread['p90'], currency)}"


def plan_name(plan: Mapping[str, Any]) -> str:
    """`8 × H100 SXM, spot`."""
    return f"{plan['cards']} × {plan['accelerator']} · {mode_label(plan['mode'])}"


def place(plan: Mapping[str, Any]) -> str:
    """Who sells it and where; for bought servers the model."""
    return " · ".join(part for part in (plan["provider"], plan["region"], plan["instance"]) if part)


@dataclass(frozen=True, slots=True)
class Card:
    """One recommended plan."""

    role: str
    why: str
    plan: Mapping[str, Any]
    name: str
    place: str
    cost: str
    amount: str | None  # where more is to be paid than the need costs
    amount_label: str
    tax: str  # in that amount; empty: none
    time: str
    facts: list[tuple[str, str]]
    notes: list[str]


def cards(result: Mapping[str, Any]) -> list[Card]:
    """The recommended plans, in their order."""
    plans = by_key(result)
    return [
        plan_card(result, plans[row["key"]], row["role"], said(row["why"]))
        for row in result["recommended"]
    ]


def merged_cards(result: Mapping[str, Any]) -> list[Card]:
    """As `cards`, a plan that has several parts once, under all of them."""
    found: dict[str, Card] = {}
    for card in cards(result):
        before = found.get(card.plan["key"])
        found[card.plan["key"]] = (
            card
            if before is None
            else replace(
                before, role=f"{before.role} · {card.role}", why=f"{before.why}\n{card.why}"
            )
        )
    return list(found.values())


def by_key(result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Plans by key, the nearest misses included."""
    return {plan["key"]: plan for plan in [*result.get("plans", ()), *result.get("nearest", ())]}


def plan_card(
    result: Mapping[str, Any], plan: Mapping[str, Any], role: str = "", why: str = ""
) -> Card:
    """One plan with its figures."""
    currency = plan["currency"]
    spread = plan["cost_spread"]
    seconds = plan["seconds"]
    facts = [
        (_("Cost, P10 to P90"), about_range(spread, currency)),
        (time_label(result), span(seconds["p50"])),
        (_("P10 to P90"), f"{span(seconds['p10'])} – {span(seconds['p90'])}"),
        (_("Regret, nine cases of ten"), about(plan["regret"]["p90"], currency)),
    ]  # fmt: skip
    if plan["precision"]:
        facts.append((_("Precision"), plan["precision"].upper()))
    if plan["accuracy_loss"]:
        facts.append((_("Accuracy loss, up to"), percent(plan["accuracy_loss"], 2)))
    if plan["price"] is not None:
        units = {"purchase": _("server"), "lease": _("server and month")}
        unit = units.get(plan["kind"], _("instance-hour"))
        facts.append(
            (
                _("Price"),
                f"{exact(plan['price'])} {plan['price_currency']} / {unit} ({day(plan['price_as_of'])})",
            )
        )
    return Card(
        str(ROLES[role]) if role else "", why, plan, plan_name(plan), place(plan), amount(plan["cost"], currency),
        amount(plan["amount"], currency) if plan["amount"] != plan["cost"] else None, paid_label(plan),
        tax_in(plan), span(seconds["p50"]), facts,
        [*doubts(plan), *(said(note) for note in plan["notes"])],
    )  # fmt: skip


def paid_label(plan: Mapping[str, Any]) -> str:
    """What a plan's amount is called: cash at the order of a purchase, else the bills with their tax."""
    return _("Cash at the order") if plan["spend_kind"] == "purchase" else _("To be paid, with tax")


def _paid_short(plan: Mapping[str, Any]) -> str:
    told = {"amount": amount(plan["amount"], plan["currency"])}
    return (
        _("order: %(amount)s") % told
        if plan["spend_kind"] == "purchase"
        else _("with tax: %(amount)s") % told
    )


def tax_rate(share: float) -> str:
    """13 %, 8.25 %: as many places as the rate has."""
    return percent(share, 0 if round(share * 100, 6).is_integer() else 2)


def tax_words(tax: Mapping[str, Any] | None) -> str:
    """A tax on purchases as a study counted it."""
    if tax is None:
        return _("none set")
    rate, rents = tax["rate"], tax.get("rents")  # studies of before told one rate
    shares = tax_rate(rate)
    if rents is not None and rents != rate:
        shares = _("%(rate)s, on rents %(rents)s") % {"rate": shares, "rents": tax_rate(rents)}
    return f"{shares}, " + (_("reclaimed") if tax["reclaimed"] else _("not reclaimed"))


def tax_in(plan: Mapping[str, Any]) -> str:
    """The tax within a plan's amount, in words; empty where it has none. Studies of before told of none."""
    tax = plan.get("tax")
    if not tax or not Decimal(tax["amount"]):
        return ""
    values = {"tax": amount(tax["amount"], plan["currency"]), "rate": tax_rate(tax["rate"])}
    if tax["reclaimed"]:
        return _("of which tax at %(rate)s, reclaimed: %(tax)s") % values
    return _("of which tax at %(rate)s, not reclaimed: %(tax)s") % values


def tax_short(plan: Mapping[str, Any]) -> str:
    """The tax within a plan's amount where a column is narrow; empty where it has none."""
    tax = plan.get("tax")
    if not tax or not Decimal(tax["amount"]):
        return ""
    return _("tax: %(tax)s") % {"tax": amount(tax["amount"], plan["currency"])}


def doubts(plan: Mapping[str, Any]) -> list[str]:
    """Why a plan is not headlined; studies of before have none."""
    return [said(text) for text in plan.get("doubts", ())]


def misses(plan: Mapping[str, Any]) -> list[str]:
    """That a plan may miss what is asked for, for whoever signs; nothing where it holds it."""
    return [said(text) for text in plan.get("doubts", ()) if text["template"] == MAY_MISS.template]


def time_label(result: Mapping[str, Any]) -> str:
    """What the second axis is."""
    return _("Latency") if result["axis"] == "latency" else _("Time")


def plan_rows(plans: Iterable[Mapping[str, Any]], sort: str = "cost") -> list[dict[str, Any]]:
    """Plans as rows of the table."""
    ordered = sorted(plans, key=SORTS.get(sort, SORTS["cost"]))
    return [
        {
            "plan": plan,
            "roles": [str(ROLES[role]) for role in plan["roles"]],
            "name": plan_name(plan),
            "place": place(plan),
            "cost": amount(plan["cost"], plan["currency"]),
            "amount": amount(plan["amount"], plan["currency"]),
            "amount_short": _paid_short(plan),
            "tax": tax_short(plan),
            "spread": about_range(plan["cost_spread"], plan["currency"]),
            "time": span(plan["seconds"]["p50"]),
            "regret": about(plan["regret"]["p90"], plan["currency"]),
            "precision": plan["precision"].upper(),
            "doubts": doubts(plan),
        }
        for plan in ordered
    ]


def why_not(result: Mapping[str, Any], code: str = "", query: str = "") -> list[dict[str, str]]:
    """What lost, filtered by reason and by any word of it."""
    words = query.casefold().split()
    found = []
    for row in result["exclusions"]:
        if code and row["code"] != code:
            continue
        shown = {
            "what": accelerator_label(row["accelerator"])
            if row["accelerator"]
            else mode_label(row["mode"]),
            "where": " · ".join(p for p in (row["provider"], row["region"], row["instance"]) if p),
            "mode": mode_label(row["mode"]) if row["mode"] else "",
            "code": str(CODES.get(row["code"], row["code"])),
            "reason": said(row["reason"]),
            "change": said(row["change"]) or _("None would"),
        }
        text = " ".join(shown.values()).casefold()
        if all(word in text for word in words):
            found.append(shown)
    return found


def codes_in(result: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """(code, label, how many) of the reasons that occur."""
    counts: dict[str, int] = {}
    for row in result["exclusions"]:
        counts[row["code"]] = counts.get(row["code"], 0) + 1
    return [
        (code, str(CODES.get(code, code)), n)
        for code, n in sorted(counts.items(), key=lambda c: -c[1])
    ]


def comparison(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Reuse, rent and buy, side by side."""
    sides = []
    for row in result["comparison"]:
        side: dict[str, Any] = {"title": said(row["title"]), "missing": said(row.get("missing"))}
        if row["key"] is not None:
            side |= {
                "name": f"{row['cards']} × {row['accelerator']} · {mode_label(row['mode'])}",
                "cost": amount(row["cost"], row["currency"]),
                "amount": amount(row["amount"], row["currency"]) if row["amount"] != row["cost"] else "",
                "amount_label": _("To be paid, with tax") if row["side"] == "rent" else _("To be paid at the order"),
                "time": span(row["seconds"]),
                "meets": row["meets"],
                "median_only": row["meets"] and not row.get("meets_p90", True),  # studies of before do not tell
                "notes": [said(note) for note in row["notes"]],
                "inputs": [
                    (str(INPUTS.get(one["name"], one["name"])), day(one["version"]), _source(one["source"]))
                    for one in row["inputs"]
                ],
            }  # fmt: skip
        sides.append(side)
    return sides


def detail(result: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """The estimate behind a plan: memory bar, saturations, figures, assumptions, trace."""
    estimate = plan.get("estimate")
    if not estimate or "memory" not in estimate:
        return None
    idle: list[Any] = next(
        (row["idle"] for row in result["balance"] if row["key"] == plan["key"]), []
    )
    shares = estimate["saturation"] or {}
    return {
        "name": plan_name(plan),
        "memory": [(said(label(p["name"])), p["bytes"]) for p in estimate["memory"]["parts"]],
        "capacity": estimate["memory"]["capacity_bytes"],
        "saturations": [{"label": said(text), "value": shares.get(name)} for name, text in SATURATIONS.items()]
        if shares
        else [],
        "idle": [said(text) for text in idle],
        "figures": [
            (said(figure_label(name, estimate["figures"])), _band(band), said(GRADES[band["grade"]]))
            for name, band in estimate["figures"].items()
        ],
        "layout": [(said(label(name)), str(value)) for name, value in estimate["layout"].items()],
        "warnings": [said(text) for text in estimate["warnings"]],
        "assumptions": [said(in_words(Message.from_json(text))) for text in estimate["assumptions"]],
        "trace": [
            (said(label(step["name"])), step["formula"], _inputs(step["inputs"]), _figure(step["result"], step["unit"]))
            for step in estimate["trace"]
        ],
        "lines": [(said(line["label"]), amount(line["amount"], plan["currency"])) for line in plan["lines"]],
        "order_lines": [
            (said(line["label"]), amount(line["amount"], plan["currency"])) for line in plan.get("order_lines", ())
        ],
        "order_label": _("Paid at the order")
        if plan["spend_kind"] == "purchase"
        else _("To be paid, with tax"),
        "order_total": amount(plan["amount"], plan["currency"]),
    }  # fmt: skip


def _inputs(inputs: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, int | float) else f"{name} = {value}"
        for name, value in inputs.items()
    )


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "s":
        return span(value)
    if unit in ("1", ""):
        return significant(value)
    if unit in ("h", "kWh"):
        return f"{significant(value)} {unit}"
    return quantity(value, unit)


def _band(band: Mapping[str, Any]) -> str:
    middle = _figure(band["p50"], band["unit"])
    if band["p10"] == band["p90"]:
        return middle
    return f"{middle} ({_figure(band['p10'], band['unit'])} – {_figure(band['p90'], band['unit'])})"


def risk(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Owning against renting over years."""
    found = result["risk"]
    if not found or "missing" in found:
        return None
    currency = result["currency"]
    needed = found["break_even_utilisation"]
    return {
        "title": _risk_title(found),
        "facts": [
            (_("Owning is cheaper"), percent(found["own_cheaper"]), _("of %(n)s scenarios over %(years)s years")
             % {"n": found["paths"], "years": found["years"]}),
            (_("Owning pays from a utilisation of"), percent(needed) if needed is not None else _("not even 100 %")),
            *_planned(found),
            (_("Value of waiting a year"), amount(found["flexibility"], currency)),
            (_("Rent of one card-hour"), amount(found["rent_per_card_hour"], currency), *_rental(found)),
        ],
        "choices": [
            [said(one["label"]), amount(one["mean"], currency),
             f"{amount(one['p10'], currency)} – {amount(one['p90'], currency)}",
             amount(one["regret"], currency), percent(one["best_share"])]
            for one in found["choices"]
        ],
        "chart": charts.tornado(
            title=_("What moves owning against renting"),
            labels=(_("Input"), _("At its P10"), _("At its P90")),
            rows=[(said(bar["label"]), float(bar["low"]), float(bar["high"])) for bar in found["tornado"]],
            base=_middle(found),
            value_label=_("Owning less renting [%(currency)s]") % {"currency": currency},
        )
        if found["tornado"]
        else None,
    }  # fmt: skip


def _risk_title(found: Mapping[str, Any]) -> str:
    """What would be bought and, where that is more than the need uses, how much of it is used."""
    title = f"{found['cards']} × {found['accelerator']}"
    used = found.get("used_cards", found["cards"])  # studies of before do not tell
    if used >= found["cards"]:
        return title
    return _("%(title)s, %(used)s used by this need") % {"title": title, "used": used}


def _rental(found: Mapping[str, Any]) -> list[str]:
    """What the rent is of; studies of before counted the same card on demand."""
    one = found.get("rental")
    if one is None:
        return []
    name = f"{one['cards']} × {one['accelerator']} · {mode_label(one['mode'])}"
    return [_("as the cheapest rental: %(name)s") % {"name": name}]


def _middle(found: Mapping[str, Any]) -> float:
    """Owning less renting with every input at its median, near enough: of both choices the means."""
    means = {one["name"]: float(one["mean"]) for one in found["choices"]}
    return means.get("own", 0.0) - means.get("rent", 0.0)


def _planned(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """How busy the servers are taken to be; studies of before do not tell."""
    use = found.get("planned_utilisation")
    if use is None:
        return []
    measured, pooled = found["measured_utilisation"], found.get("pooled_utilisation") or 0.0
    if pooled > (measured or 0.0):
        rest = _("by this need and, beside it, by open requests of other teams")
    elif measured is None:
        rest = (
            _("by this need; nothing was measured of others")
            if "own_utilisation" not in found or found["own_utilisation"] == use
            else _("by this need and, beside it, by open requests of other teams")
        )
    else:
        rest = _("by this need and, beside it, as owned cards are used today")
    return [(_("Utilisation counted on"), percent(use, 1), rest)]


def versions(result: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Everything a reader needs to know to compute it again."""
    counts, catalogue = result["counts"], result["catalogue"]
    rows: list[tuple[Any, ...]] = [
        (_("Computed for"), day(catalogue["on"])),
        (_("Newest price"), day(catalogue["as_of"])),
        (_("Catalogue"), f"SHA-256 {catalogue['hash'][:16]}"),
        (_("Estimator constants"), result["constants"]["estimator"] or "–"),
        (_("Cost defaults"), day(result["constants"]["economics"])),
        (_("Seed"), str(result["seed"])),
        (_("Accelerators"), str(counts["accelerators"])),
        (_("Offers, terms included"), number_format(counts["offers"], force_grouping=True)),
        (
            _("Layouts, precisions and batches evaluated"),
            number_format(counts["evaluated"], force_grouping=True),
        ),
        (_("Ways to pay priced"), number_format(counts["priced"], force_grouping=True)),
    ]
    if "purchase_tax" in result:
        rows.append((_("Tax on purchases"), tax_words(result["purchase_tax"])))
    rows += [_corrected(row) for row in result.get("costs", ())]
    rows += [
        (
            f"1 {rate['base']}",
            f"{Decimal(rate['rate']).normalize():f} {rate['quote']}",
            f"{day(rate['as_of'])} · {source_words(rate['source'])}",
        )
        for rate in result["rates"]
    ]
    return rows


def _corrected(row: Mapping[str, Any]) -> tuple[str, str]:
    """A cost default that the organisation corrected, with what is shipped beside it."""

    def figure(value: Any) -> str:
        parts = value if isinstance(value, list) else [value]
        return " / ".join(significant(part) for part in parts)

    told = _("%(value)s %(unit)s, corrected (shipped: %(shipped)s) · %(source)s") % {
        "value": figure(row["value"]), "unit": "" if row["unit"] == "1" else row["unit"],
        "shipped": figure(row["shipped"]), "source": source_words(row["source"]),
    }  # fmt: skip
    return tco_label(row["name"]), told


def texts(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Stored messages in the reader's language."""
    return [said(Message.from_json(one)) for one in items]


def first_rows(preview: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The first plans of a running study."""
    return [
        (plan_name(plan), amount(plan["cost"], plan["currency"]), span(plan["seconds"]))
        for plan in preview["plans"]
    ]
