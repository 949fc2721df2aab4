"""Awards and orders: two people, exact terms, the budget, numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from core.errors import InputError, NotPermitted, StaleData
from core.models import ExchangeRate
from core.organisation import today
from planning.services.ledger import OverBudget
from procurement.selectors.comparison import compare
from procurement.services import (
    awards,
    orders,
    rfqs,
)
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s():
    return b.shop()


def test_owner_and_proposer_do_not_decide_even_with_the_role(s):
    award = b.proposed(s)
    b.MembershipFactory(user=s.procurement, team=None, role="approver")
    with pytest.raises(NotPermitted, match="owner of the RFQ"):
        awards.approve_award(
            award_id=award.pk, by=type(s.procurement).objects.get(pk=s.procurement.pk)
        )


def test_an_award_is_split_by_quantity_between_vendors(s):
    rfq = b.opened(s)
    mine = rfq.quotes.get(vendor=s.vendor).lines.get()
    other = rfq.quotes.get(vendor=s.rival).lines.get()
    with pytest.raises(InputError, match="asks for 8 accelerators; the award has 7"):
        awards.propose_award(
            rfq_id=rfq.pk,
            lines=[(mine.pk, "5"), (other.pk, "2")],
            reason=b.REASON,
            by=s.procurement,
        )
    award = awards.propose_award(
        rfq_id=rfq.pk, lines=[(mine.pk, "5"), (other.pk, "3")], reason=b.REASON, by=s.procurement
    )
    awards.approve_award(award_id=award.pk, by=s.cto)
    made = {
        order.vendor.name: order.gross_amount for order in award.orders.select_related("vendor")
    }
    assert made == {
        "Hengda Integrators": Decimal("1412500"),
        "Northwind Systems": Decimal("122040"),
    }


def test_servers_of_eight_cover_eight_cards_and_forty_are_five(s):
    request = b.request(s, "20000000", plan_cards=40)
    rfq = b.rfq(s, request)
    b.quote(
        s, rfq,
        lines=[b.line("2000000", "5", kind="server", description="8 × H100", accelerators_per_item=8)],
    )  # fmt: skip
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    rfq.refresh_from_db()
    (row,) = compare(rfq).rows
    assert row.coverage[0].packs == "5 × 8 = 40"
    assert row.is_complete


def test_an_order_over_the_budget_is_refused_whole_and_takes_no_number(s):
    rfq = b.rfq(s, b.request(s, "2200000"))
    b.quote(s, rfq)  # 2,260,000 with tax: within the tolerance, but the budget holds 2,200,000
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=rfq.quotes.get().pk, reason=b.REASON, by=s.procurement
    )
    awards.approve_award(award_id=award.pk, by=s.cto)
    order = award.orders.get()
    with pytest.raises(OverBudget):
        orders.issue_order(order_id=order.pk, by=s.procurement)
    order.refresh_from_db()
    assert (order.status, order.number) == ("draft", None)


def test_an_order_whose_terms_differ_from_the_quote_is_not_issued(s):
    order = b.awarded(s).orders.get()
    order.lines.update(unit_price=Decimal("250000.000001"))
    with pytest.raises(StaleData, match="differs from the quote"):
        orders.issue_order(order_id=order.pk, by=s.procurement)


def test_the_order_number_follows_the_fiscal_year(s):
    s.organisation.fiscal_start_month = 10
    s.organisation.time_zone = "Asia/Shanghai"
    s.organisation.save()
    order = b.awarded(s).orders.get()
    expected = today().year + (1 if today().month >= 10 else 0)
    assert orders.issue_order(order_id=order.pk, by=s.procurement).number == f"PO-{expected}-0001"


def test_an_amendment_is_decided_by_another_and_the_budget_follows(s):
    order = b.issued(s)
    revision = orders.propose_amendment(
        order_id=order.pk, changes={1: {"quantity": "10"}}, reason="two spares", by=s.procurement
    )
    order.refresh_from_db()
    assert order.lines.get().quantity == 8  # the current revision binds until then
    amended = orders.approve_amendment(revision_id=revision.pk, by=s.cto)
    assert (amended.revision, amended.gross_amount) == (1, Decimal("2825000"))
    assert b.planning.held_sums(order.lines.get().request)["committed"] == Decimal("2825000")


def test_a_cancelled_order_gives_its_commitment_back_at_any_rate(s):
    order = b.issued(s)
    ExchangeRate.objects.create(base="USD", quote="CNY", rate="8", as_of=today(), source="later")
    orders.cancel_order(order_id=order.pk, reason="Vendor withdrew", by=s.cto)
    assert b.planning.held_sums(order.lines.get().request)["committed"] == 0
