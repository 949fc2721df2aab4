"""Awards to several vendors, to one, and to none; how much the ranking hangs on its weights."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError
from core.models import AuditEntry
from procurement.models import Award, PurchaseOrder
from procurement.selectors.comparison import compare
from procurement.selectors.sensitivity import ranking_sensitivity
from procurement.services import awards, orders, rfqs
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def two(s, **fields):
    """An opened RFQ, and one line of each of its two quotes."""
    rfq = b.opened(s, **fields)
    ours, theirs = (rfq.quotes.get(vendor=vendor).lines.get() for vendor in (s.vendor, s.rival))
    return rfq, ours, theirs


def split(s, rfq, *parts, **fields):
    return awards.propose_award(
        rfq_id=rfq.pk, lines=[(line.pk, n) for line, n in parts], reason=b.REASON, by=s.procurement, **fields
    )  # fmt: skip


def test_each_vendor_of_a_split_award_gets_its_own_order_on_its_own_terms(s):
    rfq, ours, theirs = two(s)
    award = awards.approve_award(award_id=split(s, rfq, (ours, "5"), (theirs, "3")).pk, by=s.cto)
    first, second = award.orders.order_by("vendor__name")
    assert [(o.vendor.name, o.currency, o.lines.get().quantity) for o in (first, second)] == [
        ("Hengda Integrators", "CNY", 5),
        ("Northwind Systems", "USD", 3),
    ]
    assert (first.gross_amount, second.gross_amount) == (1412500, 122040)
    assert set(rfq.quotes.values_list("status", flat=True)) == {"selected"}
    orders.issue_order(order_id=first.pk, by=s.procurement)
    second.refresh_from_db()
    assert (second.status, second.number) == ("draft", None)
    orders.cancel_order(order_id=second.pk, by=s.procurement, reason="no longer")
    first.refresh_from_db()
    assert first.status == "issued"


@pytest.mark.parametrize(("mine", "other"), [("5", "2"), ("5", "4"), ("8.5", "0"), ("9", "0")])
def test_a_split_covers_what_was_asked_and_no_more(s, mine, other):
    rfq, ours, theirs = two(s)
    with pytest.raises(InputError) as refused:
        split(s, rfq, (ours, mine), (theirs, other))
    assert refused.value.field == "quantity"
    assert not Award.objects.exists()


def test_a_price_break_counts_at_the_quantity_that_is_awarded(s):
    rfq = b.rfq(s)
    steps = [
        {"from_quantity": 1, "to_quantity": 7, "unit_price": "260000"},
        {"from_quantity": 8, "to_quantity": None, "unit_price": "250000"},
    ]
    ours = b.quote(s, rfq, lines=[b.line(None, breaks=steps)]).lines.get()
    theirs = b.quote(s, rfq, s.rival, "36000").lines.get()
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    award = awards.approve_award(
        award_id=split(s, rfq, (ours, "5"), (theirs, "3")).pk, by=s.cto, over_reason="fewer of each"
    )
    assert award.orders.get(vendor=s.vendor).lines.get().unit_price == 260000


def test_a_split_below_the_first_price_break_is_refused_by_its_line(s, client):
    rfq = b.rfq(s)
    steps = [{"from_quantity": 5, "to_quantity": None, "unit_price": "250000"}]
    ours = b.quote(s, rfq, lines=[b.line(None, breaks=steps)]).lines.get()
    theirs = b.quote(s, rfq, s.rival, "36000").lines.get()
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    with pytest.raises(InputError, match=r"Line 2: 4 .* start at 5") as refused:
        split(s, rfq, (theirs, "4"), (ours, "4"))
    assert (refused.value.field, refused.value.value, refused.value.limit) == ("quantity", 4, 5)
    assert not Award.objects.exists()
    client.force_login(s.procurement)
    assert client.get(rfq.get_absolute_url()).status_code == 200
    split(s, rfq, (theirs, "3"), (ours, "5"))
    assert client.get(rfq.get_absolute_url()).status_code == 200


def test_the_trail_of_a_split_award_names_what_is_bought_not_what_was_quoted(s):
    rfq, ours, theirs = two(s)
    split(s, rfq, (ours, "5"), (theirs, "3"))
    assert AuditEntry.objects.get(action="award.proposed").data["totals"] == {
        "Hengda Integrators": "1,412,500.00 CNY",
        "Northwind Systems": "122,040.00 USD",
    }


def test_an_award_to_none_closes_the_rfq_and_frees_the_request(s):
    asked = b.request(s)
    rfq = b.rfq(s, asked)
    b.quote(s, rfq)
    b.quote(s, rfq, s.rival, "36000")
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="Both have answered")
    with pytest.raises(InputError, match="names no quote"):
        split(s, rfq, (rfq.quotes.first().lines.get(), "8"), to_none=True)
    award = awards.propose_award(rfq_id=rfq.pk, to_none=True, reason=b.REASON, by=s.procurement)
    awards.approve_award(award_id=award.pk, by=s.cto)
    rfq.refresh_from_db()
    assert rfq.status == "unawarded"
    assert set(rfq.quotes.values_list("status", flat=True)) == {"not_selected"}
    assert not PurchaseOrder.objects.exists()
    assert AuditEntry.objects.filter(action="rfq.not_awarded").count() == 1
    again = b.rfq(s, asked, title="Again")
    assert again.status == "open"


def test_split_and_none_by_page(s, client):
    rfq, ours, theirs = two(s)
    client.force_login(s.procurement)
    page = client.get(reverse("rfq-compare", args=[rfq.pk])).text
    address = f"{reverse('rfq-split', args=[rfq.pk])}?quote={ours.quote_id}&quote={theirs.quote_id}"
    assert reverse("rfq-split", args=[rfq.pk]) in page
    assert f'name="line_{theirs.pk}"' in client.get(address).text
    body = {f"line_{ours.pk}": "5", f"line_{theirs.pk}": "2", "reason": b.REASON}
    refused = client.post(address, body)
    assert refused.status_code == 422
    assert "asks for 8 accelerators" in refused.text
    assert client.post(address, body | {f"line_{theirs.pk}": "3"}).status_code == 302
    award = Award.objects.get()
    awards.reject_award(award_id=award.pk, reason="rather none", by=s.cto)
    body = {"quote": "none", "reason": b.REASON}
    assert client.post(reverse("rfq-compare", args=[rfq.pk]), body).status_code == 302
    client.force_login(s.cto)
    page = client.get(rfq.get_absolute_url()).text
    assert "To no vendor" in page
    none = Award.objects.get(status="proposed")
    step = reverse("procurement-step", args=["award", none.pk, "approve"])
    assert client.post(step, {}).status_code == 302
    assert client.get(rfq.get_absolute_url()).status_code == 200
    assert client.get(reverse("rfq-compare", args=[rfq.pk])).status_code == 200


def test_the_split_page_is_for_who_may_propose(s, client):
    rfq, ours, _theirs = two(s)
    address = f"{reverse('rfq-split', args=[rfq.pk])}?quote={ours.quote_id}"
    for person, status in (
        (s.procurement, 200),
        (s.cto, 403),
        (s.operations, 404),
        (s.outsider, 404),
    ):
        client.force_login(person)
        assert client.get(address).status_code == status, person


def test_none_by_api(s):
    rfq, *_lines = two(s)
    api = APIClient()
    api.force_authenticate(s.procurement)
    made = api.post(
        f"/api/v1/procurement/rfqs/{rfq.pk}/awards/", {"to_none": True, "reason": b.REASON}, format="json"
    )  # fmt: skip
    assert (made.status_code, made.json()["to_none"], made.json()["lines"]) == (201, True, [])


def test_the_comparison_says_how_much_hangs_on_the_weights(s, client):
    rfq, *_lines = two(s)
    found = ranking_sensitivity(compare(rfq))
    assert found.winner.quote.vendor == s.vendor
    assert sum(found.found.wins) == pytest.approx(1)
    assert {label for label, _row in found.ranges} == {
        "Price per accelerator and warranted year", "Price per accelerator", "Lead time",
    }  # fmt: skip
    client.force_login(s.procurement)
    page = client.get(reverse("rfq-compare", args=[rfq.pk])).text
    assert "How much the ranking hangs on the weights" in page
    api = APIClient()
    api.force_authenticate(s.procurement)
    told = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/comparison/").json()["sensitivity"]
    assert told["winner"] == "Hengda Integrators"
    assert told["weightings"] == 1771


def test_the_comparison_asks_as_often_for_many_quotes_and_lines_as_for_few(s, client):
    def queries(vendors, lines):
        rfq = b.rfq(s, vendor_ids=[vendor.pk for vendor in vendors])
        for vendor in vendors:
            apart = [
                b.line("10", "1", kind="network", serialised=False, rfq_line=None, accelerators_per_item=0)
                for _n in range(lines)
            ]  # fmt: skip
            terms = [{"event": "order", "percent": "30"}, {"event": "acceptance", "percent": "70"}]
            b.quote(s, rfq, vendor, lines=[b.line(), *apart], payments=terms)
        rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
        client.force_login(s.procurement)
        address = reverse("rfq-compare", args=[rfq.pk])
        client.get(address)
        with CaptureQueriesContext(connection) as found:
            assert client.get(address).status_code == 200
        return len(found)

    few = queries([s.vendor, s.rival], 1)
    more = [b.vendor(s, f"Vendor {n}", "CNY") for n in range(4)]
    assert queries([s.vendor, s.rival, *more], 6) == few
