"""Work is announced where it is done next, and Home, the approvals page and the API say the same."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.formats import date_format
from rest_framework.test import APIClient

from core.organisation import today
from planning.waiting import decisions, waiting
from procurement.models import Invoice, PurchaseOrder, Vendor
from procurement.services import acceptance, awards, burn_in, invoices, orders, rfqs
from procurement.waiting import next_people
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def labels(user):
    return [str(row.label) for row in waiting(user)]


def test_an_approved_request_waits_for_the_buyer_until_quotes_are_asked_for(s, client):
    assert labels(s.procurement) == []
    asked = b.request(s)
    assert labels(s.procurement) == ["Approved: ask for quotes"]
    assert labels(s.finance) == []
    client.force_login(s.procurement)
    assert f"{reverse('rfq-create')}?request={asked.pk}" in client.get(reverse("home")).text
    b.rfq(s, asked)
    assert "Approved: ask for quotes" not in labels(s.procurement)


def test_every_step_of_the_way_waits_for_who_takes_it(s):
    award = b.proposed(s)
    assert labels(s.cto) == ["Award to decide"]
    assert labels(s.procurement) == []  # it waits for the approver, not for the buyer
    order = awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    assert labels(s.procurement) == ["Order to issue"]
    order = orders.issue_order(order_id=order.pk, by=s.procurement)
    assert labels(s.operations) == ["Delivery expected"]
    delivery = b.received(s, order)
    assert labels(s.operations) == ["Burn-in to start"]
    b.burning(s, delivery)
    assert labels(s.operations) == []
    b.upload(s, delivery)
    b.tick(s, delivery)
    burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer)
    assert labels(s.operations) == ["Acceptance to propose"]
    proposal = acceptance.propose_acceptance(delivery_id=delivery.pk, by=s.engineer, reason="all")
    assert labels(s.operations) == []
    assert labels(s.cto) == ["Acceptance to sign"]
    assert s.cto.get_short_name() in next_people(proposal)[1]
    assert s.engineer.get_short_name() not in next_people(proposal)[1]
    acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto)
    more = orders.propose_amendment(
        order_id=order.pk, changes={1: {"quantity": "9"}}, reason="one more", by=s.procurement
    )
    assert labels(s.cto) == ["Amendment to decide"]
    orders.reject_amendment(revision_id=more.pk, reason="no", by=s.cto)
    assert labels(s.cto) == []


def invoice_of(s, order):
    return invoices.capture_invoice(
        order_id=order.pk, number="INV-1", dated_on=today(), currency="CNY", by=s.finance,
        lines=[{"position": 1, "quantity": "8", "unit_price": "250000", "tax_rate": "0.13"}],
        stated_tax="260000", stated_gross="2260000",
    )  # fmt: skip


def test_a_matched_invoice_says_who_approves_it_and_waits_for_them(s, client):
    b.accepted(s)
    invoice = invoice_of(s, PurchaseOrder.objects.get())
    invoices.match_invoice(invoice_id=invoice.pk, by=s.finance)
    assert labels(s.finance) == []  # who matched does not approve
    assert labels(s.finance2) == ["Invoice to approve"]
    client.force_login(s.finance)
    page = client.get(invoice.get_absolute_url()).text
    assert "Approves it for payment" in page
    assert s.finance2.get_short_name() in page
    invoices.approve_invoice(invoice_id=invoice.pk, by=s.finance2)
    assert labels(s.finance) == ["Payment to note"]
    assert Invoice.objects.get().status == "approved"


def test_home_and_approvals_and_the_api_are_one_truth(s, client):
    award = b.proposed(s)
    client.force_login(s.cto)
    for name in ("home", "approval-list"):
        page = client.get(reverse(name)).text
        assert "Award to decide" in page, name
        assert award.rfq.get_absolute_url() in page, name
        assert award.rfq.title in page, name
    assert "Nothing waits for you" not in client.get(reverse("approval-list")).text
    api = APIClient()
    api.force_authenticate(s.cto)
    rows = api.get("/api/v1/waiting/").json()
    assert [(row["label"], row["decision"]) for row in rows] == [("Award to decide", True)]
    assert [row.url for row in decisions(s.cto)] == [rows[0]["url"]]
    awards.reject_award(award_id=award.pk, reason="too dear", by=s.cto)
    assert "Nothing waits for you" in client.get(reverse("approval-list")).text
    client.force_login(s.operations)
    assert reverse("asset-list") not in client.get(reverse("home")).text.split("<main")[1]
    client.force_login(s.outsider)
    assert waiting(s.outsider) == []


def test_after_closing_only_a_late_quote_is_offered_and_close_asks_for_its_reason(s, client):
    rfq = b.rfq(s)
    client.force_login(s.procurement)
    page = client.get(rfq.get_absolute_url()).text
    assert "Record a quote" in page
    dialog = page[page.index(f'id="rfq-{rfq.pk}-close"') :]
    assert "required" in dialog[: dialog.index("</dialog>")]
    step = client.post(reverse("procurement-step", args=["rfq", rfq.pk, "close"]), {"reason": ""})
    assert step.status_code == 422
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="all in")
    page = client.get(rfq.get_absolute_url()).text
    assert "Record a quote" not in page
    assert "Keep a late quote" in page


def test_a_sealed_rfq_offers_to_close_once_it_can_be_closed(s, client):
    rfq = b.rfq(s, sealed=True)
    client.force_login(s.procurement)
    offered = f'data-dialog="rfq-{rfq.pk}-close"'
    assert offered not in client.get(rfq.get_absolute_url()).text
    b.pass_deadline(rfq)
    assert offered in client.get(rfq.get_absolute_url()).text


def test_forms_start_with_what_is_known(s, client):
    asked = b.request(s)
    client.force_login(s.procurement)
    form = client.get(reverse("rfq-create") + f"?request={asked.pk}").context["form"]
    assert form.initial["deliver_by"] == asked.current.need_by
    rfq = b.rfq(s, asked)
    lines = client.get(reverse("quote-create", args=[rfq.pk])).context["lines"]
    assert lines.forms[0].initial["quantity"] == 8


def test_a_quote_is_refused_for_all_that_is_wrong_at_once(s, client):
    rfq = b.rfq(s, b.request(s))
    s.procurement.language = "en"
    s.procurement.save()
    client.force_login(s.procurement)
    address = reverse("quote-create", args=[rfq.pk])
    page = client.get(address).text
    assert page.count("needed in a line") >= 5
    past = today() - timedelta(days=40)
    refused = client.post(address, {
        "vendor": s.vendor.pk, "currency": "CNY", "tax_mode": "document", "valid_until": str(past),
        "lead_time_days": "-1", "payments": "half now", "months": "36", "start_trigger": "acceptance",
        "lines-TOTAL_FORMS": "1", "lines-INITIAL_FORMS": "0",
    })  # fmt: skip
    assert refused.status_code == 422
    assert set(refused.context["head"].errors) == {"valid_until", "lead_time_days", "payments"}
    (line,) = refused.context["lines"].errors
    assert {"description", "tax_percent", "serialised", "unit_price"} <= set(line)
    assert f"The last valid day, {date_format(past)}, is past" in refused.text
    assert "-1 is less than the least, 0." in refused.text


def test_without_vendors_the_form_says_so_and_leads_to_them(s, client):
    b.request(s)
    client.force_login(s.procurement)
    assert "No vendor is registered yet" not in client.get(reverse("rfq-create")).text
    Vendor.objects.all().delete()
    page = client.get(reverse("rfq-create")).text
    assert "No vendor is registered yet" in page
    assert reverse("vendor-create") in page


def test_lists_ask_no_more_for_more_rows(s, client):
    """Home and what waits, for a buyer and for who decides, with one row of a kind and with three."""

    def queries():
        counts = []
        for user in (s.procurement, s.cto):
            person = type(user).objects.get(pk=user.pk)
            client.force_login(person)
            with CaptureQueriesContext(connection) as listed:
                waiting(person)
            with CaptureQueriesContext(connection) as home:
                client.get(reverse("home"))
            counts += [len(listed), len(home)]
        return counts

    b.proposed(s)
    b.request(s)
    few = queries()
    for _ in range(2):
        b.proposed(s)
        b.request(s)
    assert labels(s.procurement) == ["Approved: ask for quotes"] * 3
    assert labels(s.cto) == ["Award to decide"] * 3
    assert [many <= one for many, one in zip(queries(), few, strict=True)] == [True] * 4
