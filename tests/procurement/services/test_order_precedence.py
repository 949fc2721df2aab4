"""An order says where its quote gives less than the clauses ask, and which of them holds."""

from __future__ import annotations

import io

import pytest
from django.urls import reverse
from pypdf import PdfReader
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import AuditEntry
from procurement.models import AssetWarranty, Clause, PurchaseOrder, RfqClause
from procurement.order_document import render_order
from procurement.services import awards, orders, rfqs
from procurement.services.clauses import load_clauses, write_clause
from procurement.services.order_precedence import set_precedence
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db

WORSE = {
    **b.WARRANTY, "months": 12, "start_trigger": "invoice", "doa_days": 7, "advance_replacement": False,
    "exclusions": "Damage by a stress test.",
}  # fmt: skip
FIELDS = ["months", "doa_days", "start_trigger", "advance_replacement", "burn_in_permitted"]


@pytest.fixture
def s():
    made = b.shop()
    load_clauses()
    return made


def drafted(s, warranty=WORSE) -> PurchaseOrder:
    """A draft order on a quote with poor terms."""
    rfq = b.rfq(s)
    quote = b.quote(s, rfq, s.vendor, warranty=warranty)
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="It has answered")
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=quote.pk, reason=b.REASON, by=s.procurement
    )
    return awards.approve_award(award_id=award.pk, by=s.cto).orders.get()


def api(user):
    client = APIClient()
    client.force_authenticate(user)
    return client


def address(order) -> str:
    return f"/api/v1/procurement/orders/{order.pk}/"


def test_it_is_seen_before_the_award_is_decided_and_before_the_order_is_issued(s, client):
    order = drafted(s)
    client.force_login(s.procurement)
    page = client.get(order.get_absolute_url()).content.decode()
    assert "In 5 terms the quote says less than was asked" in page
    assert "Order of precedence" in page
    found = api(s.auditor).get(address(order)).json()
    assert found["precedence"] == "clauses"
    assert sorted(row["field"] for row in found["differences"]) == sorted(FIELDS)
    by_field = {row["field"]: row for row in found["differences"]}
    assert by_field["months"] == {
        "field": "months", "clause": None, "clause_code": None, "asked": 36, "quoted": 12, "holds": "quote",
    }  # fmt: skip
    assert by_field["start_trigger"]["clause_code"] == "warranty-from-acceptance"
    assert by_field["start_trigger"]["holds"] == "clauses"
    award = api(s.auditor).get(f"/api/v1/procurement/awards/{order.award_id}/").json()
    assert "differences" in str(award)
    assert api(s.operations).get(address(order)).json()["differences"] is None


def test_the_paper_says_it_in_the_language_of_the_vendor(s):
    for language, words in (
        (
            "en",
            ("Order of precedence", "Dead on arrival (days)", "12 months from: Signed acceptance"),
        ),
        ("zh-hans", ("效力顺序", "以何为准", "签署验收")),
    ):
        s.vendor.language = language
        s.vendor.save(update_fields=["language"])
        order = drafted(s)
        orders.issue_order(order_id=order.pk, by=s.procurement)
        order.refresh_from_db()
        pages = PdfReader(io.BytesIO(render_order(order))).pages
        text = "".join(page.extract_text() for page in pages).replace("\n", " ")
        for word in words:
            assert word in text, word
    entry = AuditEntry.objects.filter(action="order.issued").latest("pk")
    assert {row["field"] for row in entry.data["differences"]} == set(FIELDS)


@pytest.mark.parametrize(
    ("precedence", "expected"),
    [("clauses", ("acceptance", 12, 30)), ("quote", ("invoice", 12, 7))],
)
def test_units_get_the_warranty_that_the_order_holds(s, precedence, expected):
    order = drafted(s)
    if precedence == "quote":
        set_precedence(
            order_id=order.pk, precedence="quote", reason="Known and priced.", by=s.procurement
        )
    orders.issue_order(order_id=order.pk, by=s.procurement)
    b.received(s, PurchaseOrder.objects.get(pk=order.pk))
    rows = AssetWarranty.objects.values_list("start_trigger", "months", "doa_days")
    assert set(rows) == {expected}


def test_who_says_it_and_until_when(s, client):
    order = drafted(s)
    values = {"precedence": "quote", "reason": "Known and priced."}
    for person, status in ((s.cto, 403), (s.finance, 403), (s.outsider, 404)):
        answer = api(person).post(f"{address(order)}set-precedence/", values, format="json")
        assert answer.status_code == status
    with pytest.raises(NotPermitted):
        set_precedence(order_id=order.pk, by=s.cto, **values)
    with pytest.raises(InputError, match="clauses, quote"):
        set_precedence(order_id=order.pk, precedence="vendor", reason="x", by=s.procurement)
    with pytest.raises(InputError):
        set_precedence(order_id=order.pk, precedence="quote", reason=" ", by=s.procurement)
    with pytest.raises(InputError, match="Nothing would change"):
        set_precedence(order_id=order.pk, precedence="clauses", reason="x", by=s.procurement)
    version = order.version
    client.force_login(s.procurement)
    step = reverse("procurement-step", args=["order", order.pk, "set-precedence"])
    assert client.post(step, {**values, "version": version}).status_code == 302
    entry = AuditEntry.objects.get(action="order.precedence_set")
    assert entry.data["changes"] == {"precedence": ["clauses", "quote"]}
    with pytest.raises(StaleData) as error:
        set_precedence(
            order_id=order.pk, precedence="clauses", reason="x", by=s.procurement, version=version
        )
    assert error.value.changes["precedence"] == ("clauses", "quote")
    orders.issue_order(order_id=order.pk, by=s.procurement)
    with pytest.raises(InvalidTransition):
        set_precedence(order_id=order.pk, precedence="clauses", reason="x", by=s.procurement)


def test_an_order_from_before_holds_what_was_quoted_and_says_that_it_does_not_say(s, client):
    order = drafted(s)
    PurchaseOrder.objects.update(precedence="")
    orders.issue_order(order_id=order.pk, by=s.procurement)
    found = api(s.auditor).get(address(order)).json()
    assert {row["holds"] for row in found["differences"]} == {None}
    client.force_login(s.procurement)
    page = client.get(order.get_absolute_url()).content.decode()
    assert "without saying which holds" in page
    b.received(s, PurchaseOrder.objects.get(pk=order.pk))
    assert set(AssetWarranty.objects.values_list("start_trigger", flat=True)) == {"invoice"}


def test_a_new_version_of_a_clause_keeps_or_changes_what_it_asks(s, client):
    words = {name: "Word" for name in ("title_en", "title_zh", "text_en", "text_zh")}
    kept = write_clause(code="doa-window", version=1, reason="words", by=s.procurement, **words)
    assert kept.asks == {"doa_days": 30, "doa_from_delivery": True, "doa_new": True}
    client.force_login(s.procurement)
    page = reverse("clause-detail", args=["doa-window"])
    assert 'value="30"' in client.get(page).content.decode()
    answer = client.post(
        page, {**words, "version": 2, "reason": "longer", "asks_doa_days": 45, "promised": ["doa_new"]}
    )  # fmt: skip
    assert answer.status_code == 302
    newest = Clause.objects.filter(code="doa-window").first()
    assert newest.asks == {"doa_days": 45, "doa_new": True}
    given = {**words, "code": "doa-window", "version": 3, "reason": "odd", "asks": {"doa_days": 0}}
    refused = api(s.procurement).post("/api/v1/procurement/clauses/", given, format="json")
    assert refused.status_code == 422
    assert "3650" in str(refused.json())
    rfq = b.rfq(s, clauses=["new-parts"])
    assert RfqClause.objects.get(rfq=rfq).asks == {
        "new_parts_only": True,
        "authorised_channel": True,
    }
