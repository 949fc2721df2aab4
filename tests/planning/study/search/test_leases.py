"""Leases by quotation: what they bind to, what a need carries, and when they are not headlined."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from core.money import Money
from planning.economics import defaults
from planning.economics.types import Site
from planning.study.request import parse_request
from planning.study.search import leasing
from planning.study.search.compare import market_changes, outdates
from planning.study.search.leasing import lease_order
from planning.study.search.leasing import leased as leased_ways
from planning.study.search.purchase_tax import PurchaseTax
from planning.study.search.run import Setting, run_study, ways_of
from planning.study.search.snapshot import Lease, Room, snapshot_from_json
from planning.study.search.what_if import Changes, part_of, what_if
from tests.planning.study.search import markets
from tests.planning.study.search.markets import H100, HOURS, market, offer, reasons, text

# 32 cards over most of two years
NEED = {**HOURS, "gpu_hours": 500_000, "accelerators": 32, "duration_days": 730}


def usd(amount):
    return None if amount is None else Money(Decimal(amount), "USD")


def lease(monthly="12000", months=36, deposit="24000", buyout="50000", **fields):
    values = {"platform": f"hgx-{H100}", "lessor": "Lessor", "monthly": usd(monthly), "months": months,
              "deposit": usd(deposit), "buyout": usd(buyout), "as_of": date(2026, 11, 1), "source": "Q-17"}  # fmt: skip
    return Lease(**{**values, **fields})


def study(*leases, data=NEED, tax=None, currency="USD", use=0.9, **changes):
    snapshot = replace(
        market(offer(price="80"), platforms=[markets.platform()], slugs=(H100,)),
        leases=leases,
        **changes,
    )
    setting = Setting(currency, 1, "US", use, tax=tax)
    return run_study(parse_request(data), None, snapshot, setting)


def leased(result):
    return next(p for p in [*result["plans"], *result["nearest"]] if p["mode"] == "leased")


@pytest.mark.parametrize("currency", ["USD", "CNY"])
def test_the_order_is_every_month_the_deposit_and_what_is_bought_beside(currency):
    plan = leased(study(lease(), tax=PurchaseTax(0.13), currency=currency))

    factor = 1 if currency == "USD" else 7
    lines = {line["name"]: Decimal(line["amount"]) for line in plan["order_lines"]}
    assert lines["lease"] == 12_000 * 36 * 4 * factor
    assert lines["deposit"] == 24_000 * 4 * factor
    assert set(lines) == {"lease", "deposit", "network", "storage", "vat"}
    beside = lines["lease"] + lines["network"] + lines["storage"]
    assert abs(lines["vat"] - beside * Decimal("0.13")) < Decimal("0.1")
    assert sum(lines.values()) == Decimal(plan["amount"])
    assert Decimal(plan["cost"]) == Decimal(plan["searched_cost"])
    assert (plan["kind"], plan["spend_kind"], plan["provider"]) == ("lease", "purchase", "Lessor")
    assert (plan["price"], plan["price_currency"], plan["source"]) == ("12000", "USD", "Q-17")
    notes = " ".join(text(note) for note in plan["notes"])
    assert "Leased of Lessor for 36 months: 4 ×" in notes
    assert "They may be kept for" in notes


def test_what_is_not_quoted_is_said_and_is_no_zero():
    plan = leased(study(lease(deposit=None, buyout=None)))

    assert "deposit" not in {line["name"] for line in plan["order_lines"]}
    notes = [text(note) for note in plan["notes"]]
    assert "No deposit is quoted" in notes
    assert "No price to keep the servers is quoted" in notes


def test_terms_follow_each_other_until_they_cover_the_need():
    once, twice = leased(study(lease(months=24))), leased(study(lease(months=12)))

    paid = [
        next(Decimal(x["amount"]) for x in plan["order_lines"] if x["name"] == "lease")
        for plan in (once, twice)
    ]
    assert paid[0] == paid[1] == 12_000 * 24 * 4
    assert len(once["cash"]) == 25
    deposit = Decimal(24_000 * 4)
    beside = sum(
        Decimal(x["amount"]) for x in once["order_lines"] if x["name"] in ("network", "storage")
    )
    assert Decimal(once["cash"][0]) == deposit + beside
    assert Decimal(once["cash"][-1]) > Decimal(once["cash"][0])
    assert Decimal(once["cash"][-1]) < Decimal(once["cash"][-2])  # the deposit comes back


def test_tax_that_is_not_reclaimed_and_a_dearer_rate_cost_more():
    base = Decimal(leased(study(lease()))["cost"])
    assert Decimal(leased(study(lease(monthly="13000")))["cost"]) > base
    assert Decimal(leased(study(lease(), tax=PurchaseTax(0.13)))["cost"]) == base
    assert Decimal(leased(study(lease(), tax=PurchaseTax(0.13, reclaimed=False)))["cost"]) > base


def test_it_is_no_headline_while_nobody_is_known_to_use_it():
    short = {**HOURS, "gpu_hours": 800, "accelerators": 8}
    result = study(lease(), data=short, use=None)
    plan = leased(result)
    assert plan["roles"] == []
    assert any("the time of the lease" in text(doubt) for doubt in plan["doubts"])
    busy = leased(study(lease(monthly="4000"), use=0.95))
    assert busy["doubts"] == []


def test_without_a_quotation_leasing_is_named_as_missing_and_with_one_not():
    assert reasons(study(), mode="leased", code="unsold")
    assert not reasons(study(lease()), mode="leased", code="unsold")
    dear = study(
        lease(),
        lease(monthly="90000", lessor="Dear"),
        data={**NEED, "budget": "2500000", "currency": "USD"},
    )
    lost = reasons(dear, subject="lease", provider="Dear")
    assert lost[0]["code"] == "budget"
    assert "A budget of" in text(lost[0]["change"])


def test_without_a_rate_the_lease_is_named():
    yen = lease(monthly="1")
    yen = replace(yen, monthly=Money(Decimal(1_500_000), "JPY"), deposit=None, buyout=None)
    result = study(yen)
    assert any("Lessor" in row["subject"] for row in result["unpriced"])


def test_the_snapshot_keeps_it_what_if_counts_it_and_a_new_quotation_outdates():
    plain = market(offer(price="80"), platforms=[markets.platform()], slugs=(H100,))
    quoted = replace(plain, leases=(lease(), lease(months=12, deposit=None, buyout=None)))

    assert snapshot_from_json(quoted.to_json()) == quoted
    part = part_of(quoted.to_json(), frozenset({H100}))
    assert len(part.leases) == 2
    assert part_of(quoted.to_json(), frozenset()).leases == ()
    found = what_if(
        parse_request(NEED), None, part, Setting("USD", 1, "US", 0.9), Changes(price=5.0)
    )
    assert found["cheapest"]["mode"] in ("leased", "colocated")
    moved = market_changes(plain.to_json(), quoted.to_json())
    assert moved["leases_changed"] == 2
    assert outdates(moved, "USD")


def test_one_lease_or_room_without_a_rate_hides_no_other():
    yen = Money(Decimal(1_500_000), "JPY")
    bad = replace(lease(), lessor="Bad", monthly=yen, deposit=None, buyout=None)
    kept = [Room(Site(name, 500.0, 500.0, 20, 40.0)) for name in ("First", "Last")]
    dear = Room(Site("Yen", 500.0, 500.0, 20, 40.0), charge=Money(Decimal(9000), "JPY"))
    rooms = (kept[0], dear, kept[1])

    result = study(bad, lease(), rooms=rooms)

    mine = [row for row in result["unpriced"] if row["subject"].startswith(("Bad", "Lessor"))]
    assert {row["subject"] for row in mine} == {"Bad · HGX", "Lessor · HGX · Yen"}
    known, request = None, parse_request(NEED)
    snapshot = replace(
        market(offer(price="80"), platforms=[markets.platform()], slugs=(H100,)),
        leases=(bad, lease()), rooms=rooms,
    )  # fmt: skip
    found = ways_of(request, known, snapshot.accelerators, frozenset({H100}))
    candidates, _unpriced = leased_ways(found.ways, snapshot.accelerators, snapshot, "USD")
    assert set(candidates.room.tolist()) == {-1, 0, 2}
    assert set(candidates.lease.tolist()) == {1}


def test_orders_and_the_version_of_cost_defaults_are_computed_once(monkeypatch):
    counted = []
    monkeypatch.setattr(
        leasing, "lease_order", lambda *args: counted.append(args) or lease_order(*args)
    )
    rooms = tuple(Room(Site(name, 500.0, 500.0, 20, 40.0)) for name in "ABC")
    snapshot = replace(
        market(platforms=[markets.platform()], slugs=(H100,)), leases=(lease(),), rooms=rooms
    )
    found = ways_of(parse_request(NEED), None, snapshot.accelerators, frozenset({H100}))
    candidates, _ = leased_ways(found.ways, snapshot.accelerators, snapshot, "USD")

    assert len(candidates) == 4 * len(found.ways)
    assert len(counted) == len(set(found.ways.cards.tolist()))
    with defaults.corrected([replace(defaults.known("pue.china"), value=1.3)]):
        monkeypatch.setattr(defaults.hashlib, "sha256", None)
        assert "+1." in defaults.stamp()


def test_a_quotation_is_before_tax_whatever_the_server_price_says():
    taxed = replace(markets.platform(), tax_included=True)
    snapshot = replace(
        market(offer(price="80"), platforms=[taxed], slugs=(H100,)), leases=(lease(),)
    )
    plan = leased(run_study(parse_request(NEED), None, snapshot, Setting("USD", 1, "US", 0.9)))

    notes = [text(note) for note in plan["notes"]]
    assert not any("The price includes tax" in note for note in notes)
    assert any("No tax on purchases is set" in note for note in notes)
