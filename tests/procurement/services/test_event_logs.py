"""An event log of a management controller decides the item of the server that it was read from."""

from datetime import timedelta

import pytest
from django.utils import timezone

from procurement.models import BurnInRun, UnitVerdict
from procurement.services import burn_in
from tests.procurement import builders as make
from tests.procurement.services.test_performance import in_a_server

pytestmark = pytest.mark.django_db


def sel():
    """Events of the last hours: the controller tells no zone, so they may be of the run that has just begun."""
    now = timezone.now()
    events = (
        "OS Boot #0x22 | boot completed",
        "Power Supply PS2 Status | Power Supply AC lost",
        "Memory A1 | Correctable ECC",
    )
    return "".join(
        f"{n:4x} | {now - timedelta(hours=4 - n):%m/%d/%Y | %H:%M:%S} | {event} | Asserted\n"
        for n, event in enumerate(events, 1)
    ).encode()


QUIET = b"SEL has no entries\n"


def run_of(node):
    return BurnInRun.objects.get(asset=node)


def test_a_fault_in_the_log_fails_the_server_and_says_where():
    s = make.shop()
    _delivery, node, cards = in_a_server(s)
    kept = make.upload(s, _delivery, content=sel(), node_id=node.pk)
    assert (kept.format, kept.verdict, kept.flags) == ("bmc_sel_text", "fail", [])
    [verdict] = UnitVerdict.objects.filter(evidence=kept)
    assert (verdict.asset, verdict.bound_by, verdict.verdict) == (node, "server", "fail")
    assert {reason["where"] for reason in verdict.reasons} == {"line 2", "line 3"}
    assert verdict.covered_seconds == 0
    assert run_of(node).status == "failed"
    assert run_of(node).items.get(item__code="A4.12").result == "fail"
    assert not UnitVerdict.objects.filter(evidence=kept, asset__in=cards).exists()


def test_a_log_without_a_fault_waits_for_a_person():
    s = make.shop()
    delivery, node, _cards = in_a_server(s)
    make.upload(s, delivery, content=QUIET, node_id=node.pk)
    row = run_of(node).items.get(item__code="A4.12")
    assert row.result == "review"
    burn_in.decide_item(
        run_id=run_of(node).pk, code="A4.12", result="pass", note="Cleared before, empty after", by=s.engineer
    )  # fmt: skip
    row.refresh_from_db()
    assert row.result == "pass"


def test_a_log_uploaded_for_no_server_is_flagged_and_proves_nothing():
    s = make.shop()
    delivery, node, _cards = in_a_server(s)
    kept = make.upload(s, delivery, content=sel())
    assert [flag["template"] for flag in kept.flags] == [
        "The log names no server: upload it for the one that it was read from"
    ]
    assert run_of(node).items.get(item__code="A4.12").result == "open"
