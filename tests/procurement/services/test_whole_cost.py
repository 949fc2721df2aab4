"""Quotes by their whole cost: the engine's owning with each quote's own price and warranty, and per unit of work."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework.test import APIClient

from catalog.models import Accelerator
from catalog.models.accelerators import AcceleratorSpec
from core.models import ExchangeRate, Organisation
from core.money import Money
from core.organisation import today
from planning.economics import defaults
from planning.economics.ownership import evaluate
from planning.economics.ownership_case import default_case
from planning.economics.types import ServerPlatform
from procurement.models import Rfq
from procurement.selectors.comparison import compare
from procurement.selectors.whole_cost import lowest, whole_costs
from procurement.services import rfqs
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
HOURS = 40.0
SLUG, TDP = "h100-sxm-80gb", 700.0


def card(slug: str) -> None:
    """In the catalogue, with its power."""
    made = Accelerator.objects.create(slug=slug, name=slug, vendor="NVIDIA", generation="hopper")
    made.current = AcceleratorSpec.objects.create(
        accelerator=made, number=1, hbm_bytes=80e9, tdp=TDP, as_of=today(), source="test",
        origin="reference", confidence="read",
    )  # fmt: skip
    made.save()


@pytest.fixture
def s():
    shop = b.shop()
    card(SLUG)
    return shop


def closed(s, rfq):
    rfq = rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="all are in")
    return compare(rfq)


def of(comparison, vendor):
    row = next(row for row in comparison.rows if row.quote.vendor == vendor)
    return whole_costs(comparison)[row.quote.pk]


def estimated(s, **plan):
    """A request whose study estimated its plan."""
    found = {
        "seconds": {"p10": 1.0, "p50": HOURS * 3600, "p90": 2.0},
        "precision": "bf16",
        "estimate": {
            "figures": {"mfu": {"p10": 0.3, "p50": 0.4, "p90": 0.5, "unit": "1"}},
            "accelerator": {"peak_flops": {"bf16": 989e12}},
        },
        **plan,
    }
    return b.request(s, **{f"plan_{name}": value for name, value in found.items()})


def two(s, cheap: str, dear: str, *, quantity: str = "8"):
    """The same cards: cheaper with one year of warranty by the rival, dearer with three by the vendor."""
    s.rival = b.vendor(s, "Cheap and Short", "CNY")
    rfq = b.rfq(s, b.request(s), vendor_ids=[s.vendor.pk, s.rival.pk])
    b.quote(s, rfq, s.vendor, dear, lines=[b.line(dear, quantity)])
    b.quote(
        s,
        rfq,
        s.rival,
        cheap,
        lines=[b.line(cheap, quantity)],
        warranty={**b.WARRANTY, "months": 12},
    )
    return closed(s, rfq)


@pytest.mark.parametrize(
    ("cheap", "dear"), [("65000", "70000"), ("250000", "255000"), ("50000", "52500")]
)
def test_cheaper_by_5000_but_good_for_one_year_loses_to_dearer_and_good_for_three(s, cheap, dear):
    comparison = two(s, cheap, dear)
    short, long = of(comparison, s.rival), of(comparison, s.vendor)
    assert comparison.cheapest.quote.vendor == s.rival
    assert comparison.best.quote.vendor == s.vendor
    assert long.per_warranted_year < short.per_warranted_year
    assert long.total < short.total
    assert lowest(comparison, whole_costs(comparison)).quote.vendor == s.vendor


def test_a_discount_above_what_the_cover_costs_wins(s):
    comparison = two(s, "50000", "70000")
    assert lowest(comparison, whole_costs(comparison)).quote.vendor == s.rival


def test_it_is_what_the_engine_says_of_the_quoted_price_and_warranty(s):
    comparison = two(s, "65000", "70000")
    found = of(comparison, s.rival)
    kw = TDP * 1.5 / 1000
    server = ServerPlatform("x", "x", SLUG, 1, Money(Decimal(65000), "CNY"), kw, 1)
    case = default_case(server, 8)
    expected = evaluate(
        replace(case, network_share=0.0, storage_share=0.0, vat_rate=0.0, lead_weeks=30 / 7)
    )
    assert case.warranty_months == 12
    assert found.total == expected.total
    assert sum((amount.amount for _label, amount in found.lines), Decimal(0)) == found.total.amount


def test_months_of_cover_count_and_not_whole_years_only(s):
    totals = []
    for months in (12, 18, 24, 36, 48):
        rfq = b.rfq(s)
        b.quote(s, rfq, warranty={**b.WARRANTY, "months": months})
        totals.append(of(closed(s, rfq), s.vendor).total.amount)
    year = 2_000_000 * Decimal(str(defaults.value("warranty.rate")))
    assert totals[0] - totals[1] == totals[1] - totals[2] == year / 2
    assert totals[2] - totals[3] == year
    assert totals[3] == totals[4]  # cover beyond the years of service buys nothing in them


def test_the_same_card_sells_for_the_same_whatever_was_paid(s):
    comparison = two(s, "65000", "70000")
    resale = []
    for vendor in (s.vendor, s.rival):
        lines = {label.template: amount for label, amount in of(comparison, vendor).lines}
        resale.append(lines["Resale at the end"])
    assert resale[0] == resale[1]


def test_rent_offered_beside_it_changes_nothing_of_what_a_bought_card_sells_for(s):
    alone = b.rfq(s)
    b.quote(s, alone)
    mixed = b.rfq(s)
    b.quote(s, mixed)
    b.quote(s, mixed, s.rival, "3000", lines=[b.line("3000", kind="cloud")])
    assert of(closed(s, mixed), s.vendor).lines == of(closed(s, alone), s.vendor).lines


def test_lines_beside_the_cards_count_once_and_tax_where_it_is_not_reclaimed(s):
    rfq = b.rfq(s)
    switch = b.line(
        "90000", "1", kind="network", description="Switch", rfq_line=None, accelerators_per_item=0
    )
    b.quote(s, rfq, lines=[b.line(), switch])
    plain = b.rfq(s)
    b.quote(s, plain)
    with_switch, without = closed(s, rfq), closed(s, plain)
    difference = of(with_switch, s.vendor).total - of(without, s.vendor).total
    assert difference == Money(Decimal("90000.00"), "CNY")
    before = of(without, s.vendor).total
    Organisation.objects.update(purchase_tax_reclaimed=False)
    assert of(without, s.vendor).total - before == Money(Decimal("260000.00"), "CNY")


def test_what_is_missing_makes_it_unknown_and_says_what(s):
    rfq = b.rfq(s)
    b.quote(s, rfq)
    b.quote(s, rfq, s.rival, "36000")
    comparison = closed(s, rfq)
    Rfq.objects.filter(pk=rfq.pk).update(rates={})
    ExchangeRate.objects.all().delete()
    comparison = compare(Rfq.objects.get(pk=rfq.pk))
    foreign = of(comparison, s.rival)
    assert foreign.total is None
    assert "exchange rate from USD" in str(foreign.unknown)
    assert of(comparison, s.vendor).total is not None
    rented = b.rfq(s)
    b.quote(s, rented, lines=[b.line(kind="cloud")])
    found = of(closed(s, rented), s.vendor)
    assert found.total is None
    assert "nothing to own" in str(found.unknown)


def test_a_card_whose_power_nobody_knows_has_no_whole_cost(s):
    rfq = b.rfq(s)
    b.quote(s, rfq, lines=[b.line(accelerator_slug="no-such-card")])
    found = of(closed(s, rfq), s.vendor)
    assert found.total is None
    assert "power" in str(found.unknown)


def test_a_pflop_hour_and_a_million_tokens_of_the_requests_own_work(s):
    request = estimated(s)
    rfq = b.rfq(s, request)
    b.quote(s, rfq)
    comparison = closed(s, rfq)
    found = of(comparison, s.vendor)
    (pflop,), (tokens,) = found.per_pflop_hour, found.per_million_tokens
    use = Decimal(str(defaults.value("utilisation.owned")))
    hour = found.total.amount / (
        8 * 3 * 8760 * use
    )  # of a card that works; spares make up for repairs
    assert pflop.amount.amount == pytest.approx(
        hour / Decimal("0.3956"), rel=Decimal("0.0001")
    )  # 989 TFLOPS x 40 %
    assert "40.0 % of the peak in BF16" in str(pflop.told)
    run = hour * 8 * Decimal(HOURS)  # 300 M tokens
    assert tokens.amount.amount == pytest.approx(run / 300, rel=Decimal("0.0001"))
    assert "320 card-hours" in str(tokens.told)


def test_without_an_estimate_of_the_offered_card_nothing_is_made_up(s):
    rfq = b.rfq(s)
    b.quote(s, rfq)
    (row,) = of(closed(s, rfq), s.vendor).per_million_tokens
    assert row.amount is None
    assert "estimates no plan" in str(row.told)
    card("h200-sxm-141gb")
    other = b.rfq(s, estimated(s))
    b.quote(s, other, lines=[b.line(accelerator_slug="h200-sxm-141gb")])
    (row,) = of(closed(s, other), s.vendor).per_pflop_hour
    assert row.amount is None


def test_every_assumption_is_in_words_on_page_and_api(s, client):
    rfq = b.rfq(s, estimated(s), terms="72 h at full load", deliver_by=today() + timedelta(days=40),
                requirements=[])  # fmt: skip
    b.quote(s, rfq, warranty={**b.WARRANTY, "burn_in_permitted": None})
    closed(s, rfq)
    client.force_login(s.procurement)
    page = client.get(reverse("rfq-compare", args=[rfq.pk])).text
    for word in ("Whole cost of owning, 3 years", "nothing was measured", "colocation", "PUE",
                 "% spares", "Per million tokens", "Not said", "The terms of acceptance are agreed to"):  # fmt: skip
        assert word in page, word
    api = APIClient()
    api.force_authenticate(s.procurement)
    (row,) = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/comparison/").json()["rows"]
    assert row["whole_cost"]["total"]["currency"] == "CNY"
    assert row["whole_cost"]["per_million_tokens"][0]["amount"]["currency"] == "CNY"
    assert any("nothing was measured" in one for one in row["whole_cost"]["assumptions"])
    found = {check["term"]: check["verdict"] for check in row["compliance"]}
    assert found == {
        "quantity": "meets", "warranty_months": "meets", "warranty_start": "meets",
        "burn_in": "unsaid", "deliver_by": "meets", "terms": "unsaid",
    }  # fmt: skip


@pytest.mark.slow
def test_twenty_vendors_with_two_hundred_lines_take_no_more_queries_and_little_time(s):
    def measured(vendors: int, lines: int) -> tuple[int, float]:
        many = [b.vendor(s, f"V{vendors}-{n}", "CNY" if n % 2 else "USD") for n in range(vendors)]
        rfq = b.rfq(s, estimated(s), vendor_ids=[v.pk for v in many])
        parts = [
            b.line("9", rfq_line=None, description=f"P{k}", kind="other", accelerators_per_item=0)
            for k in range(lines - 1)
        ]
        for v in many:
            b.quote(s, rfq, v, lines=[b.line("250000"), *parts])
        comparison = closed(s, rfq)
        whole_costs(comparison)
        with CaptureQueriesContext(connection) as seen:
            start = time.process_time()
            whole_costs(comparison)
            took = time.process_time() - start
        return len(seen), took

    few, _ = measured(2, 3)
    many, took = measured(20, 200)
    assert many <= few
    assert took < 0.15
