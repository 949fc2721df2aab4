"""A new version of a quote against the one before it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from core.errors import InvalidTransition
from procurement.selectors.quote_changes import quote_changes
from procurement.services import quotes
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s():
    return b.shop()


def two(s, rfq):
    rails = {
        "description": "Rails",
        "kind": "other",
        "serialised": False,
        "accelerators_per_item": 0,
        "rfq_line": None,
    }
    cable = {**rails, "description": "Cable"}
    b.quote(
        s, rfq, lines=[b.line(), b.line("100", "2", **rails)],
        answers=[{"requirement": 1, "value": "80"}],
        files=[SimpleUploadedFile("one.txt", b"one")],
    )  # fmt: skip
    return b.quote(
        s, rfq, lead_time_days=45, warranty={**b.WARRANTY, "months": 48},
        lines=[b.line("50", "4", **cable), b.line("245000")],
        answers=[{"requirement": 1, "value": "141"}],
        payments=[{"event": "acceptance", "percent": "100"}],
        files=[SimpleUploadedFile("two.txt", b"two")],
    )  # fmt: skip


MEMORY = {"kind": "memory", "value": "80", "unit": "GB"}


def test_every_field_and_line_before_and_after(s):
    found = quote_changes(two(s, b.rfq(s, requirements=[MEMORY])))

    assert [(one.field, one.before, one.after) for one in found.head] == [
        ("lead_time_days", "30", "45")
    ]
    assert [(one.field, one.before, one.after) for one in found.warranty] == [
        ("months", "36", "48")
    ]
    assert [(one.shown_before, one.shown_after) for one in found.answers] == [("80 GB", "141 GB")]
    lines = [
        (row.before and row.before.position, row.after and row.after.position, row.line.description)
        for row in found.lines
    ]
    assert lines == [(None, 1, "Cable"), (1, 2, "H100 SXM 80 GB"), (2, None, "Rails")]
    moved = found.lines[1]
    assert [(one.field, one.before, one.after) for one in moved.changes] == [
        ("unit_price", "250000", "245000")
    ]
    assert (moved.net_before.amount, moved.net_after.amount) == (Decimal(2000000), Decimal(1960000))
    assert found.payments == ("", "100 acceptance")
    assert found.files == (("one.txt",), ("two.txt",))
    # (8 x 245,000 + 4 x 50) x 1.13 less (8 x 250,000 + 2 x 100) x 1.13
    assert (found.difference.amount, found.difference.currency) == (Decimal("-45200.00"), "CNY")


def test_a_lowered_promise_is_a_change(s):
    rfq = b.rfq(s)
    told = {"benchmark": "hpl", "per": "server", "value": "330000"}
    b.quote(s, rfq, lines=[b.line(promises=[told])])
    lower = b.quote(s, rfq, lines=[b.line(promises=[{**told, "value": "300000"}])])
    [row] = quote_changes(lower).lines
    assert [(one.field, one.before, one.after) for one in row.changes] == [
        ("promises", "HPL: 330000 Gflop/s per server", "HPL: 300000 Gflop/s per server")
    ]
    none = b.quote(s, rfq, lines=[b.line()])
    [row] = quote_changes(none).lines
    assert row.changes[0].shown_after == "not stated"


def test_a_first_version_changed_nothing_and_another_currency_has_no_difference(s):
    rfq = b.rfq(s)
    first = b.quote(s, rfq)
    assert quote_changes(first) is None
    second = b.quote(s, rfq, currency="USD")
    found = quote_changes(second)
    assert found.difference is None
    assert [one.field for one in found.head] == ["currency"]


def test_a_longer_validity_is_the_only_change(s):
    first = b.quote(s, b.rfq(s))
    later = quotes.extend_quote(
        quote_id=first.pk, valid_until=first.valid_until + timedelta(days=9), by=s.procurement
    )
    found = quote_changes(later)
    assert [one.field for one in found.head] == ["valid_until"]
    assert found.lines == ()
    assert found.difference.amount == 0


def test_page_and_api_tell_it_to_those_who_read_prices(s, client):
    quote = two(s, b.rfq(s, requirements=[MEMORY]))
    api = APIClient()
    address = f"/api/v1/procurement/quotes/{quote.pk}/changes/"
    for person in (s.procurement, s.cto, s.finance, s.auditor):
        client.force_login(person)
        api.force_login(person)
        page = client.get(f"/procurement/quotes/{quote.pk}/").text
        assert "Changes since version 1" in page
        assert "-45,200.00" in page.replace("−", "-")
        assert api.get(address).json()["difference"] == {"amount": "-45200.00", "currency": "CNY"}
    for person in (s.operations, s.requester, s.outsider, s.admin, s.superuser):
        client.force_login(person)
        api.force_login(person)
        assert api.get(address).status_code == 404
        assert "Changes since version 1" not in client.get(f"/procurement/quotes/{quote.pk}/").text


def test_nobody_reads_changes_of_a_sealed_bid(s, client):
    quote = two(s, b.rfq(s, sealed=True, requirements=[MEMORY]))
    with pytest.raises(InvalidTransition):
        quote_changes(quote)
    api = APIClient()
    for person in (s.procurement, s.cto, s.finance, s.auditor, s.superuser):
        client.force_login(person)
        api.force_login(person)
        assert api.get(f"/api/v1/procurement/quotes/{quote.pk}/changes/").status_code in (404, 409)
        assert "Changes since" not in client.get(f"/procurement/quotes/{quote.pk}/").text


def test_queries_do_not_grow_with_the_lines(s, django_assert_max_num_queries):
    rfq = b.rfq(s)
    for price in ("10", "11"):
        made = b.quote(s, rfq, lines=[b.line(price, description=f"Card {n}") for n in range(60)])
    with django_assert_max_num_queries(11):
        found = quote_changes(made)
    assert len(found.lines) == 60
