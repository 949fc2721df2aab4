"""An award, order or amendment does not go silently above what was approved."""

import re
from decimal import Decimal

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError, NotPermitted
from core.models import AppendOnlyError, AuditEntry
from core.money import Money
from planning.models import ApprovalPolicy, OverApproval, PlanChoice
from planning.services import requests as planning_requests
from planning.services.over_approvals import AboveApproved, agree_to_more
from procurement.services import awards, orders
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
# Two quotes: 8 × 250,000 + 13 % = 2,260,000 with tax is the first.
GROSS = Decimal(2260000)
WHY = "The price rose since March; the team cannot wait."


def award_for(approved: str):
    s = b.shop()
    asked = b.request(s, approved)
    made = b.rfq(s, asked)
    b.quote(s, made)
    b.quote(s, made, s.rival, "36000", warranty={**b.WARRANTY, "months": 12})
    b.planning.fund(s, "9000000")
    b.rfqs.close_rfq(rfq_id=made.pk, by=s.procurement, reason="Both have answered")
    chosen = made.quotes.get(vendor=s.vendor)
    award = awards.propose_award(
        rfq_id=made.pk, quote_id=chosen.pk, reason=b.REASON, by=s.procurement
    )
    return s, asked, award


def test_within_the_tolerance_the_award_is_approved_and_ordered():
    s, _asked, award = award_for("2152381")  # 5 % more is 2,260,000.05
    order = awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    assert orders.issue_order(order_id=order.pk, by=s.procurement).number


def test_above_the_tolerance_the_award_needs_a_reason_that_names_every_amount():
    s, _asked, award = award_for("2152380")
    with pytest.raises(InputError) as refused:
        awards.approve_award(award_id=award.pk, by=s.cto)
    assert refused.value.field == "over_reason"
    said = str(refused.value)
    for figure in ("2,152,380.00", "2,260,000.00", "2,259,999.00"):
        assert figure in said, said
    award.refresh_from_db()
    assert award.status == "proposed"
    order = awards.approve_award(award_id=award.pk, by=s.cto, over_reason=WHY).orders.get()
    agreed = OverApproval.objects.get()
    assert (agreed.amount, agreed.reason, agreed.by) == (GROSS, WHY, s.cto)
    assert AuditEntry.objects.filter(action="request.over_approved", reason=WHY).count() == 1
    assert orders.issue_order(order_id=order.pk, by=s.procurement).number
    agreed.reason = "other"
    with pytest.raises(AppendOnlyError):
        agreed.save()


def test_where_the_policy_forbids_it_only_a_new_approval_helps():
    s, asked, award = award_for("2000000")
    ApprovalPolicy.objects.update(over_approval=False)
    with pytest.raises(AboveApproved):
        awards.approve_award(award_id=award.pk, by=s.cto, over_reason=WHY)
    assert not OverApproval.objects.exists()
    # Revised while in sourcing: nothing can be awarded until it is approved again, then for the new amount.
    planning_requests.revise(request_id=asked.pk, by=s.requester, reason="Quotes are higher")
    with pytest.raises(Exception, match="approved request"):
        awards.approve_award(award_id=award.pk, by=s.cto)
    planning_requests.update_draft(
        request_id=asked.pk, by=s.requester, justification="Quotes came in higher than planned."
    )
    asked.refresh_from_db()
    b.planning.choose(asked, b.planning.study(asked, "2300000"))
    planning_requests.submit_request(request_id=asked.pk, by=s.requester)
    b.planning.vote(asked, s.lead)
    order = awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    assert orders.issue_order(order_id=order.pk, by=s.procurement).number
    asked.refresh_from_db()
    assert asked.status == "sourcing"


def test_an_order_is_not_issued_above_what_was_approved_until_an_approver_agrees():
    s, asked, award = award_for("2300000")
    order = awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    ApprovalPolicy.objects.update(order_tolerance=Decimal(0))
    PlanChoice.objects.update(base_amount=Decimal(2200000))
    with pytest.raises(AboveApproved, match=r"2,260,000\.00"):
        orders.issue_order(order_id=order.pk, by=s.procurement)
    with pytest.raises(NotPermitted):
        orders.agree_over(order_id=order.pk, over_reason=WHY, by=s.procurement)
    with pytest.raises(InputError) as refused:
        agree_to_more(request_id=asked.pk, up_to=Money(GROSS, "CNY"), reason="  ", by=s.cto)
    assert (refused.value.field, refused.value.value) == ("over_reason", "  ")
    orders.agree_over(order_id=order.pk, over_reason=WHY, by=s.cto)
    assert orders.issue_order(order_id=order.pk, by=s.procurement).number


def test_an_amendment_goes_above_only_with_a_reason():
    s, _asked, award = award_for("2300000")
    order = awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    orders.issue_order(order_id=order.pk, by=s.procurement)
    more = orders.propose_amendment(
        order_id=order.pk, changes={1: {"unit_price": "300000"}}, reason="dearer", by=s.procurement
    )
    with pytest.raises(InputError) as refused:
        orders.approve_amendment(revision_id=more.pk, by=s.cto)
    assert refused.value.field == "over_reason"
    orders.approve_amendment(revision_id=more.pk, by=s.cto, over_reason=WHY)
    assert OverApproval.objects.get().amount == Decimal(2712000)


def test_who_has_a_limit_does_not_agree_above_it():
    s, _asked, award = award_for("2000000")
    b.planning.ApprovalLimit.objects.create(user=s.cto, amount=2100000, currency="CNY")
    with pytest.raises(NotPermitted, match="limit"):
        awards.approve_award(award_id=award.pk, by=s.cto, over_reason=WHY)


def test_pages_and_api_show_approved_awarded_difference_and_runner_up(client):
    s, _asked, award = award_for("2000000")
    client.force_login(s.cto)
    page = client.get(award.rfq.get_absolute_url()).content.decode()
    for text in ("Hengda Integrators", "2,260,000.00", "2,000,000.00", "260,000.00", "13.0",
                 "Northwind Systems", "8 cards", 'name="over_reason"', "ink-bad"):  # fmt: skip
        assert text in page, text
    dialogs = re.findall(r"<dialog.*?</dialog>", page, re.S)
    dialog = next(text for text in dialogs if 'name="over_reason"' in text)
    for text in ("Hengda Integrators", "2,260,000.00", "2,000,000.00", "Northwind Systems"):
        assert text in dialog, text
    compare = client.get(reverse("rfq-compare", args=[award.rfq_id])).content.decode()
    assert "Against what was approved" in compare
    assert "260,000.00" in compare
    address = reverse("procurement-step", args=["award", award.pk, "approve"])
    again = client.post(address, {"version": award.version})
    assert again.status_code == 422
    assert "2,000,000.00" in again.text
    api = APIClient()
    api.force_authenticate(s.cto)
    facts = api.get(f"/api/v1/procurement/awards/{award.pk}/").json()["facts"]
    row = facts["against_approved"][0]
    assert row["approved"] == {"amount": "2000000.00", "currency": "CNY"}
    assert row["beyond"]
    assert row["difference"]["amount"].startswith("260000")
    assert facts["parts"][0]["cards"] == 8
    assert facts["runner_up"]["vendor"] == "Northwind Systems"
    answer = api.post(f"/api/v1/procurement/awards/{award.pk}/approve/", {}, format="json")
    assert answer.status_code == 422
    answer = api.post(
        f"/api/v1/procurement/awards/{award.pk}/approve/", {"over_reason": WHY}, format="json"
    )
    assert answer.status_code == 200, answer.content
    order = award.orders.get()
    page = client.get(order.get_absolute_url()).content.decode()
    assert "+260,000.00" in page
    assert WHY in page
    shown = api.get(f"/api/v1/procurement/orders/{order.pk}/").json()["against_approved"][0]
    assert shown["above"]
    assert not shown["beyond"]
    assert api.get("/api/v1/procurement/orders/").json()["results"][0]["against_approved"] is None


def test_within_what_was_approved_no_reason_is_asked_for(client):
    s, _asked, award = award_for("3000000")
    client.force_login(s.cto)
    page = client.get(award.rfq.get_absolute_url()).content.decode()
    assert 'name="over_reason"' not in page
    assert "740,000.00" in page
