"""Who declared a conflict of interest decides nothing, on this RFQ or on another in which the vendor quotes."""

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError, NotPermitted
from core.organisation import today
from procurement.models import ConflictStatement
from procurement.services import awards, orders, quotes, rfqs
from procurement.services.conflicts import state_conflict
from procurement.services.negotiation import record_concession
from procurement.services.substitutions import consent_to_substitution, propose_substitution
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
OWN = "You declared a conflict of interest"


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def declare(rfq, person, vendor=None, has_conflict=True):
    return state_conflict(
        rfq_id=rfq.pk, by=person, has_conflict=has_conflict,
        text="My brother works there" if has_conflict else "",
        vendor_id=vendor.pk if vendor else None,
    )  # fmt: skip


def disqualify(s, rfq, by):
    return quotes.disqualify_quote(
        quote_id=rfq.quotes.get(vendor=s.rival).pk, reason="no burn-in", by=by
    )


def concede(s, rfq, by):
    return record_concession(
        rfq_id=rfq.pk, vendor_id=s.vendor.pk, subject="warranty", from_value="12", to_value="36",
        conceded_by="Mr Wang", agreed_on=today(), by=by,
    )  # fmt: skip


def propose(s, rfq, by):
    return awards.propose_award(
        rfq_id=rfq.pk, quote_id=rfq.quotes.get(vendor=s.vendor).pk, reason=b.REASON, by=by
    )


def test_who_declared_one_neither_disqualifies_nor_notes_concessions(s):
    rfq = b.opened(s)
    declare(rfq, s.cto)
    declare(rfq, s.buyer2)
    with pytest.raises(NotPermitted, match=OWN):
        disqualify(s, rfq, s.cto)
    with pytest.raises(NotPermitted, match=OWN):
        concede(s, rfq, s.buyer2)
    concede(s, rfq, s.procurement)
    assert disqualify(s, rfq, s.lead).status == "disqualified"


def test_an_award_proposed_by_one_who_declared_a_conflict_since_is_not_approved(s):
    rfq = b.opened(s)
    award = propose(s, rfq, s.procurement)
    declare(rfq, s.procurement)
    with pytest.raises(NotPermitted, match=f"{s.procurement}, on whose part this rests"):
        awards.approve_award(award_id=award.pk, by=s.cto)
    awards.reject_award(award_id=award.pk, reason="a conflict of interest", by=s.cto)
    # The owner of the RFQ is in conflict; another one proposes and a third decides.
    award = propose(s, rfq, s.buyer2)
    assert awards.approve_award(award_id=award.pk, by=s.cto).status == "approved"


def test_a_conflict_with_a_vendor_holds_where_that_vendor_quotes(s):
    first, other = b.opened(s), b.opened(s)
    declare(first, s.cto, s.rival)
    with pytest.raises(NotPermitted, match=OWN):
        disqualify(s, other, s.cto)
    award = propose(s, other, s.procurement)
    with pytest.raises(NotPermitted, match=OWN):
        awards.approve_award(award_id=award.pk, by=s.cto)
    # Where the vendor does not quote, it does not hold; nor does one that names no vendor, elsewhere.
    alone = b.rfq(s)
    b.quote(s, alone)
    rfqs.close_rfq(rfq_id=alone.pk, by=s.procurement, reason="in")
    declare(first, s.lead)
    for decider, rfq in ((s.cto, alone), (s.lead, other)):
        award = rfq.awards.first() or propose(s, rfq, s.procurement)
        assert awards.approve_award(award_id=award.pk, by=decider).status == "approved"


def test_it_ends_where_it_is_taken_back_or_stated_otherwise(s):
    first, other = b.opened(s), b.opened(s)
    declare(first, s.cto, s.rival)
    declare(other, s.cto, has_conflict=False)
    assert disqualify(s, other, s.cto).status == "disqualified"
    third = b.opened(s)
    with pytest.raises(NotPermitted, match=OWN):
        disqualify(s, third, s.cto)
    declare(first, s.cto, has_conflict=False)
    assert disqualify(s, third, s.cto).status == "disqualified"


@pytest.mark.parametrize("second", ["vendor", None])
def test_a_second_conflict_takes_the_first_not_back_and_none_takes_back_both(s, second):
    first, other = b.opened(s), b.rfq(s)
    b.quote(s, other, s.rival)
    rfqs.close_rfq(rfq_id=other.pk, by=s.procurement, reason="in")
    declare(first, s.cto, s.rival)
    declare(first, s.cto, s.vendor if second else None)
    with pytest.raises(NotPermitted, match=OWN):
        disqualify(s, other, s.cto)
    declare(first, s.cto, has_conflict=False)
    assert disqualify(s, other, s.cto).status == "disqualified"


def test_it_holds_for_the_orders_that_came_of_the_rfq(s):
    order = b.issued(s)
    other = b.opened(s)
    declare(other, s.cto, s.vendor)
    revision = orders.propose_amendment(
        order_id=order.pk, changes={1: {"quantity": "7"}}, reason="less", by=s.procurement
    )
    row = propose_substitution(
        order_id=order.pk,
        position=1,
        part_number="B",
        description="B",
        reason="x",
        by=s.procurement,
    )
    with pytest.raises(NotPermitted, match=OWN):
        orders.approve_amendment(revision_id=revision.pk, by=s.cto)
    with pytest.raises(NotPermitted, match=OWN):
        orders.reject_amendment(revision_id=revision.pk, reason="no", by=s.cto)
    with pytest.raises(NotPermitted, match=OWN):
        consent_to_substitution(substitution_id=row.pk, by=s.cto)
    assert consent_to_substitution(substitution_id=row.pk, by=s.lead).status == "consented"
    orders.approve_amendment(revision_id=revision.pk, by=s.lead)


def test_nobody_in_conflict_agrees_to_a_higher_amount_nor_on_the_part_of_one(s):
    order = b.awarded(s).orders.get()
    other = b.opened(s)
    declare(other, s.lead, s.vendor)
    with pytest.raises(NotPermitted, match=OWN):
        orders.agree_over(order_id=order.pk, over_reason="prices moved", by=s.lead)
    declare(other, s.procurement, s.vendor)
    with pytest.raises(NotPermitted, match="on whose part this rests"):
        orders.agree_over(order_id=order.pk, over_reason="prices moved", by=s.cto)


def test_the_vendor_is_named_by_page_and_api(s, client):
    rfq = b.opened(s)
    client.force_login(s.cto)
    step = reverse("procurement-step", args=["rfq", rfq.pk, "state-conflict"])
    assert "Northwind Systems" in client.get(step).text
    body = {"has_conflict": "on", "text": "Shares", "vendor_id": s.rival.pk}
    assert client.post(step, {"vendor_id": s.rival.pk}).status_code == 422
    assert client.post(step, body | {"vendor_id": 0}).status_code == 422
    assert client.post(step, body).status_code == 302
    assert "Northwind Systems · Shares" in client.get(rfq.get_absolute_url()).text
    api = APIClient()
    api.force_authenticate(s.lead)
    made = api.post(
        f"/api/v1/procurement/rfqs/{rfq.pk}/state-conflict/",
        body | {"has_conflict": True},
        format="json",
    )
    assert made.status_code == 200, made.json()
    assert [row["vendor"] for row in made.json()["statements"]] == [s.rival.pk] * 2
    with pytest.raises(InputError, match="was not invited"):
        state_conflict(rfq_id=rfq.pk, by=s.cto, has_conflict=True, text="x", vendor_id=0)
    assert ConflictStatement.objects.count() == 2
