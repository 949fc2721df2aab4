"""Tax on what is rented: on the bills as a line, in the cost only where it is not reclaimed, in every view."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from planning import reference
from planning.economics.types import PaymentMode
from planning.plan_rows import brief_rows
from planning.study.model import known_model
from planning.study.request import parse_request
from planning.study.search.backing import card_hour
from planning.study.search.market import Market
from planning.study.search.purchase_tax import PurchaseTax
from planning.study.search.run import Setting, run_study
from planning.study.search.what_if import Changes, what_if
from planning.study_changes import what_if as shown_what_if
from planning.study_tables import plan_rows
from planning.study_text import result_lines
from tests.planning.study.search import markets
from tests.planning.study.search.markets import H100, HOURS, SERVE, TUNE, market, offer, text

KEPT, BACK = PurchaseTax(0.13, reclaimed=False), PurchaseTax(0.13)
CENT = Decimal("0.01")


def study(data=HOURS, tax=None, snapshot=None, budget=None):
    asked = {**data, **({} if budget is None else {"budget": budget, "currency": "USD"})}
    request = parse_request(asked)
    known = None
    if request.model is not None:
        known = known_model(request.model, reference.resolve_model)
    return run_study(
        request, known, snapshot or market(offer(), slugs=(H100,)), Setting("USD", 1, "US", tax=tax)
    )


def rents(result):
    return [p for p in result["plans"] if p["spend_kind"] == "cloud" and p["kind"] != "stock"]


@pytest.mark.parametrize("tax", [KEPT, BACK])
@pytest.mark.parametrize("data", [HOURS, TUNE, SERVE])
def test_every_rented_plan_holds_its_tax_as_a_line_and_adds_up(data, tax):
    snapshot = None if data is HOURS else markets.shipped()
    before = {p["key"]: p for p in rents(study(data, None, snapshot))}
    plans = rents(study(data, tax, snapshot))

    assert {"offer", "mix"} <= {p["kind"] for p in plans} or data is not SERVE
    for plan in plans:
        lines = {line["name"]: Decimal(line["amount"]) for line in plan["order_lines"]}
        net = sum(amount for name, amount in lines.items() if name != "vat")
        assert lines["vat"] == (net * Decimal("0.13")).quantize(CENT, ROUND_HALF_UP)
        assert sum(lines.values()) == Decimal(plan["amount"])
        assert Decimal(plan["cost"]) == (net if tax.reclaimed else Decimal(plan["amount"]))
        assert sum(Decimal(line["amount"]) for line in plan["lines"]) == Decimal(plan["cost"])
        assert plan["searched_cost"] == plan["cost"]
        assert plan["tax"] == {
            "amount": str(lines["vat"]), "rate": tax.rate, "reclaimed": tax.reclaimed,
        }  # fmt: skip
        assert Decimal(plan["cash"][-1]) == Decimal(plan["cost"])
        said = (
            "reclaimed: it is in no cost" if tax.reclaimed else "not reclaimed: it is in the cost"
        )
        assert any(said in text(note) for note in plan["notes"])
        if plan["key"] in before and tax.reclaimed:
            assert plan["cost"] == before[plan["key"]]["cost"]


def test_where_no_tax_is_set_none_is_made_up_and_the_plan_says_so():
    (plan,) = [p for p in rents(study()) if p["mode"] == "on_demand"]
    assert (plan["amount"], plan["tax"]) == (plan["cost"], None)
    assert any("No tax is set for the organisation" in text(note) for note in plan["notes"])


def test_the_budget_is_held_against_the_taxed_bill():
    cost = Decimal(next(p for p in rents(study()) if p["mode"] == "on_demand")["cost"])
    enough = str(cost * Decimal("1.05"))
    assert [p for p in rents(study(budget=enough)) if p["mode"] == "on_demand"]
    assert not [p for p in rents(study(budget=enough, tax=BACK)) if p["mode"] == "on_demand"]


def test_owning_is_held_against_the_rent_with_the_tax_that_stays():
    here = market(offer(price="80"), platforms=[markets.platform()], slugs=(H100,))
    data = {**HOURS, "gpu_hours": 160_000, "accelerators": 32, "need_by": "2027-09-01"}
    rent = [
        Decimal(study(data, tax, here)["risk"]["rent_per_card_hour"]) for tax in (None, BACK, KEPT)
    ]
    assert rent[0] == rent[1] == 10
    assert rent[2] == Decimal("11.30")


def test_what_if_brief_page_and_terminal_show_it():
    result = study(tax=BACK)
    request, setting = parse_request(HOURS), Setting("USD", 1, "US", tax=BACK)
    turned = what_if(request, None, market(offer(), slugs=(H100,)), setting, Changes(price=2.0))

    line = turned["cheapest"]
    net = Decimal(line["cost"])
    assert Decimal(line["amount"]) == (net * Decimal("1.13")).quantize(CENT, ROUND_HALF_UP)
    assert Decimal(line["tax"]["amount"]) == Decimal(line["amount"]) - net
    assert "of which tax at 13" in shown_what_if(result, turned)["rows"][0]["paid"]
    assert "of which tax at 13" in brief_rows(result)[0]["tax"]
    row = plan_rows(result["plans"])[0]
    assert row["tax"].startswith("tax: ")
    assert row["amount_short"].startswith("with tax: ")
    assert any("of which tax at 13" in one for one in result_lines(result))
    rent = next(side for side in result["comparison"] if side["side"] == "rent")
    assert Decimal(rent["amount"]) > Decimal(rent["cost"])


def test_services_bear_their_own_rate_and_goods_theirs():
    """Chinese VAT: 6 per cent on a cloud's services, 13 on equipment that is bought."""
    tax = PurchaseTax(0.13, reclaimed=False, rents=0.06)
    result = study(SERVE, tax, markets.shipped())
    for plan in result["plans"]:
        if plan["tax"] is None:
            continue
        rented = plan["kind"] in ("offer", "mix")
        lines = {line["name"]: Decimal(line["amount"]) for line in plan["order_lines"]}
        assert plan["tax"]["rate"] == (0.06 if rented else 0.13)
        if rented:
            net = sum(amount for name, amount in lines.items() if name != "vat")
            assert lines["vat"] == (net * Decimal("0.06")).quantize(CENT, ROUND_HALF_UP)
            assert plan["searched_cost"] == plan["cost"]
    assert {p["tax"]["rate"] for p in result["plans"] if p["tax"]} == {0.06, 0.13}
    assert result["purchase_tax"] == {"rate": 0.13, "rents": 0.06, "reclaimed": False}


def test_the_break_even_of_a_what_if_uses_the_rents_that_it_supposes():
    snapshot = market(offer(), slugs=(H100,))
    sold = Market(None, snapshot.offers, {H100: np.array([0])}, (), ())
    taxed = PurchaseTax(0.13, reclaimed=False, rents=0.06)
    world = SimpleNamespace(market=sold, snapshot=snapshot, tax=taxed, price_factor=1.0)

    price = snapshot.offers[0].price.amount / snapshot.offers[0].accelerators
    one = card_hour(world, H100, PaymentMode.ON_DEMAND, "USD")
    assert one.amount == price * Decimal("1.06")
    world.price_factor = 2.0
    twice = card_hour(world, H100, PaymentMode.ON_DEMAND, "USD")
    assert twice.amount == price * Decimal("2.12")
