"""Levers with amounts, and what vendors gave way on, round by round."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry, ExchangeRate
from core.money import Money
from core.organisation import today
from planning.economics import defaults
from procurement.models import Concession, Rfq
from procurement.selectors.comparison import compare
from procurement.selectors.levers import levers, longest_life, rounds, warranty_worth
from procurement.services import awards, rfqs
from procurement.services.negotiation import record_concession
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def apart(kind, price):
    """A line beside the accelerators."""
    return b.line(price, "1", kind=kind, description=kind, serialised=False, rfq_line=None,
                  accelerators_per_item=0)  # fmt: skip


def opened(s, **mine):
    rfq = b.rfq(s)
    b.quote(s, rfq, **mine)
    b.quote(s, rfq, s.rival, "36000")
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    rfq.refresh_from_db()
    return rfq


def of(rfq, vendor):
    found = levers(compare(rfq))
    return {lever.subject: lever for lever in found[rfq.quotes.get(vendor=vendor).pk]}


def give(s, rfq, **fields):
    values = {
        "rfq_id": rfq.pk, "vendor_id": s.vendor.pk, "subject": "warranty", "from_value": "12 months",
        "to_value": "36 months", "amount": "200000", "conceded_by": "Mr Wang", "agreed_on": today(),
        "by": s.procurement, **fields,
    }  # fmt: skip
    return record_concession(**values)


def test_a_longer_warranty_is_worth_what_the_years_without_it_cost(s):
    rfq = opened(s, warranty={**b.WARRANTY, "months": 12})
    lever = of(rfq, s.vendor)["warranty"]
    rate, discount = (Decimal(str(defaults.value(n))) for n in ("warranty.rate", "discount_rate"))
    a_year = 2_000_000 * rate  # 8 cards of 250,000 net
    worth = a_year / (1 + discount) ** 2 + a_year / (1 + discount) ** 3
    # The engine discounts from the order: the lead time and the acceptance come before the first year.
    assert worth * Decimal("0.9") < lever.amount.amount < worth
    assert "From 12 to 36 months" in str(lever.text)
    assert "warranty" not in of(rfq, s.rival)


NET = Money(Decimal(2_000_000), "CNY")


def test_a_warranty_is_worth_nothing_where_no_more_is_asked(s):
    assert warranty_worth(NET, 36, 36) == Money(Decimal(0), "CNY")
    assert warranty_worth(NET, 60, 12) == Money(Decimal(0), "CNY")
    assert warranty_worth(Money(Decimal(0), "CNY"), 12, 36).amount == 0  # goods that cost nothing


def test_months_count_and_not_whole_years_only(s):
    whole = warranty_worth(NET, 24, 36)
    assert warranty_worth(NET, 24, 30) == Money(whole.amount / 2, "CNY").rounded()
    assert warranty_worth(NET, 30, 36) == warranty_worth(NET, 24, 30)
    assert warranty_worth(NET, 36, 42).amount > 0  # also where no whole year is added
    assert warranty_worth(NET, 1, 12).amount > 0


def test_every_year_up_to_the_longest_life_is_worth_more_and_what_is_beyond_is_not_known(s):
    last = longest_life()
    worths = [warranty_worth(NET, 12, months).amount for months in range(12, last + 1)]
    assert worths == sorted(set(worths))
    assert warranty_worth(NET, 12, last + 24) == warranty_worth(NET, 12, last)
    assert warranty_worth(NET, last, last + 24) is None
    assert warranty_worth(None, 12, 36) is None


def test_a_warranty_beyond_what_is_known_says_so_and_one_without_a_price_is_not_known(s):
    rfq = opened(s, warranty={**b.WARRANTY, "months": 12})
    Rfq.objects.filter(pk=rfq.pk).update(warranty_months=84)
    rfq.refresh_from_db()
    lever = of(rfq, s.vendor)["warranty"]
    assert "counted to month 60" in str(lever.text)
    assert lever.amount == warranty_worth(NET, 12, 60)
    Rfq.objects.filter(pk=rfq.pk).update(rates={})
    ExchangeRate.objects.all().delete()
    rfq.refresh_from_db()
    lever = of(rfq, s.rival)["warranty"]  # in USD, and there is no rate
    assert lever.amount is None
    assert "not known without a price" in str(lever.text)
    assert of(rfq, s.rival)["sample"].amount is None


def test_lines_beside_the_cards_are_measured_against_the_others(s):
    rfq = b.rfq(s)
    b.quote(s, rfq, lines=[b.line(), apart("network", "90000"), apart("service", "50000")])
    b.quote(s, rfq, s.rival, lines=[b.line("36000"), apart("network", "10000")])
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    rfq.refresh_from_db()
    mine, other = of(rfq, s.vendor), of(rfq, s.rival)
    assert mine["bundle"].amount == Money(Decimal("19000.00"), "CNY")  # 90,000 − 10,000 × 7.1
    assert mine["deployment"].amount == Money(Decimal("50000.00"), "CNY")
    assert "bundle" not in other
    assert other["deployment"].amount is None
    # A card: 250,000 + 140,000 / 8 here, 36,000 × 7.1 + 71,000 / 8 there; times 8.
    assert mine["price"].amount == Money(Decimal("24200.00"), "CNY")
    assert "price" not in other


def test_what_is_paid_before_the_acceptance_is_the_stake_of_a_sample(s):
    terms = [{"event": "order", "percent": "30"}, {"event": "delivery", "percent": "60"},
             {"event": "acceptance", "percent": "10"}]  # fmt: skip
    rfq = opened(s, payments=terms)
    assert of(rfq, s.vendor)["sample"].amount == Money(Decimal("2034000.00"), "CNY")
    assert of(rfq, s.rival)["sample"].amount is None
    after = opened(s, payments=[{"event": "acceptance", "percent": "100"}])
    assert "sample" not in of(after, s.vendor)


def test_the_dearer_quote_is_asked_for_the_difference(s):
    rfq = opened(s)
    assert of(rfq, s.rival)["price"].amount == Money(Decimal("44800.00"), "CNY")
    assert "price" not in of(rfq, s.vendor)
    # No name of the other vendor is in the words that go to the negotiation.
    for lever in of(rfq, s.rival).values():
        assert "Hengda" not in str(lever.text)


def test_concessions_are_kept_by_round_with_who_when_and_worth(s, client):
    rfq = opened(s)
    give(s, rfq)
    give(s, rfq, round=2, subject="price", from_value="250000", to_value="245000", amount="40000")
    give(s, rfq, round=2, vendor_id=s.rival.pk, subject="deployment", amount=None)
    found = rounds(rfq)
    assert [(number, len(rows)) for number, rows in found] == [(1, 1), (2, 2)]
    first = found[0][1][0]
    assert (first.worth, first.conceded_by, first.recorded_by) == (
        Money(Decimal("200000"), "CNY"), "Mr Wang", s.procurement,
    )  # fmt: skip
    entry = AuditEntry.objects.filter(action="rfq.concession_recorded").latest("pk")
    assert "245000" not in str(entry.data)
    client.force_login(s.procurement)
    page = client.get(rfq.get_absolute_url()).text
    assert "Round 2" in page
    assert "12 months → 36 months" in page
    assert "What may be negotiated" in client.get(reverse("rfq-compare", args=[rfq.pk])).text
    client.force_login(s.operations)
    assert "245000" not in client.get(rfq.get_absolute_url()).text


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("round", {"round": 2}),
        ("round", {"round": 0}),
        ("subject", {"subject": "gift"}),
        ("vendor_id", {"vendor_id": 0}),
        ("amount", {"amount": "0"}),
        ("amount", {"amount": "-1"}),
        ("amount", {"amount": "1.001"}),
        ("from_value", {"from_value": " "}),
        ("to_value", {"to_value": "x" * 201}),
        ("agreed_on", {"agreed_on": timedelta(days=1)}),
        ("agreed_on", {"agreed_on": timedelta(days=-1)}),
    ],
)
def test_a_concession_that_cannot_be_is_refused_at_its_field(s, field, changes):
    rfq = opened(s)
    if isinstance(changes.get("agreed_on"), timedelta):
        changes = {"agreed_on": today() + changes["agreed_on"]}
    with pytest.raises(InputError) as refused:
        give(s, rfq, **changes)
    assert refused.value.field == field
    assert not Concession.objects.exists()


def test_concessions_are_noted_between_the_opening_and_the_award_by_procurement(s):
    rfq = opened(s)
    with pytest.raises(NotPermitted):
        give(s, rfq, by=s.cto)
    award = awards.propose_award(rfq_id=rfq.pk, to_none=True, reason=b.REASON, by=s.procurement)
    awards.approve_award(award_id=award.pk, by=s.cto)
    with pytest.raises(InvalidTransition):
        give(s, rfq)


def test_the_same_by_page_and_api(s, client):
    rfq = opened(s)
    client.force_login(s.procurement)
    address = reverse("procurement-step", args=["rfq", rfq.pk, "record-concession"])
    assert "Hengda Integrators" in client.get(address).text
    body = {
        "vendor_id": s.vendor.pk, "round": 1, "subject": "sample", "from_value": "none",
        "to_value": "one server, two weeks", "conceded_by": "Ms Li", "agreed_on": str(today()),
    }  # fmt: skip
    assert client.post(address, body | {"round": "5"}).status_code == 422
    assert client.post(address, body).status_code == 302
    api = APIClient()
    api.force_authenticate(s.procurement)
    made = api.post(
        f"/api/v1/procurement/rfqs/{rfq.pk}/record-concession/",
        body | {"subject": "delivery", "amount": "1000.50"}, format="json",
    )  # fmt: skip
    assert made.status_code == 200, made.json()
    shown = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/comparison/").json()
    assert [row["amount"] for row in shown["concessions"]] == [None, "1000.500"]
    assert {lever["subject"] for lever in shown["rows"][1]["levers"]} >= {"price", "deployment"}
