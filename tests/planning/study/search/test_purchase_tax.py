"""Tax on a purchase: a line of the order, in the cost only where it is not reclaimed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from core.errors import InputError
from planning.study.request import parse_request
from planning.study.search.purchase_tax import PurchaseTax, tax_from_json, usual_tax
from planning.study.search.run import Setting, run_study
from tests.planning.study.search import markets
from tests.planning.study.search.markets import H100, HOURS, market, offer, reasons, text

BUY = {**HOURS, "gpu_hours": 160_000, "accelerators": 32, "need_by": "2027-09-01"}


def bought(tax=None, currency="USD", **price):
    platform = markets.platform(price=price.pop("price", "320000"))
    snapshot = market(offer(price="80"), platforms=[replace(platform, **price)], slugs=(H100,))
    result = run_study(parse_request(BUY), None, snapshot, Setting(currency, 1, "US", tax=tax))
    return next(p for p in [*result["plans"], *result["nearest"]] if p["mode"] == "colocated")


@pytest.mark.parametrize("currency", ["USD", "CNY"])
def test_the_order_holds_tax_as_a_line_and_its_lines_add_up(currency):
    plan = bought(PurchaseTax(0.13), currency)

    lines = {line["name"]: Decimal(line["amount"]) for line in plan["order_lines"]}
    before = sum(amount for name, amount in lines.items() if name != "vat")
    assert sum(lines.values()) == Decimal(plan["amount"])
    assert lines["servers"] == (4 * 320_000 if currency == "USD" else 4 * 320_000 * 7)
    assert abs(lines["vat"] - before * Decimal("0.13")) <= Decimal("0.05")
    assert plan["tax"] == {"amount": str(lines["vat"]), "rate": 0.13, "reclaimed": True}
    assert plan["summary"]["tax"] == plan["tax"]


def test_reclaimed_tax_is_paid_at_the_order_comes_back_and_costs_nothing():
    without, taxed = bought(), bought(PurchaseTax(0.13))

    tax = Decimal(taxed["tax"]["amount"])
    assert without["tax"] is None
    assert taxed["cost"] == without["cost"]
    assert Decimal(taxed["amount"]) - tax == Decimal(without["amount"])
    paid, before = ([Decimal(x) for x in plan["cash"]] for plan in (taxed, without))
    assert paid[0] - before[0] == tax
    assert paid[1:] == before[1:]
    assert any("reclaimed: it is in no cost" in text(note) for note in taxed["notes"])
    assert any("No tax on purchases is set" in text(note) for note in without["notes"])


def test_tax_that_is_not_reclaimed_is_in_cost_and_life_cost():
    reclaimed, kept = bought(PurchaseTax(0.13)), bought(PurchaseTax(0.13, reclaimed=False))

    assert kept["amount"] == reclaimed["amount"]
    assert Decimal(kept["cost"]) > Decimal(reclaimed["cost"])
    assert Decimal(kept["searched_cost"]) == Decimal(kept["cost"])
    assert Decimal(kept["cash"][-1]) > Decimal(reclaimed["cash"][-1])


def test_a_price_with_tax_in_it_is_not_taxed_again():
    gross = bought(PurchaseTax(0.13), price="361600", tax_included=True)
    net = bought(PurchaseTax(0.13), price="320000")

    assert gross["amount"] == net["amount"]
    assert gross["cost"] == net["cost"]
    unknown = bought(None, price="361600", tax_included=True)
    assert any("The price includes tax" in text(note) for note in unknown["notes"])


def test_the_budget_is_held_against_the_taxed_amount():
    data = {**BUY, "budget": "1700000", "currency": "USD"}
    snapshot = market(offer(price="80"), platforms=[markets.platform()], slugs=(H100,))

    def over(tax):
        result = run_study(parse_request(data), None, snapshot, Setting("USD", 1, "US", tax=tax))
        return reasons(result, mode="colocated", code="budget")

    assert over(None) == []
    assert len(over(PurchaseTax(0.13))) == 1


def test_a_usual_rate_is_known_or_not_made_up_and_a_rate_has_limits():
    assert usual_tax("CN") == PurchaseTax(0.13, reclaimed=True, rents=0.06)
    assert usual_tax("US") is None
    assert tax_from_json(PurchaseTax(0.2, reclaimed=False).to_json()) == PurchaseTax(0.2, False)
    assert tax_from_json(PurchaseTax(0.13, True, 0.06).to_json()) == PurchaseTax(0.13, True, 0.06)
    assert tax_from_json({"rate": 0.13, "reclaimed": True}).rent_rate == 0.13  # a study of before
    assert tax_from_json(None) is None
    for rate in (-0.01, 1.0):
        with pytest.raises(InputError):
            PurchaseTax(rate)
