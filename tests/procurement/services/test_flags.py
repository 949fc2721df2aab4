"""What is wrong with a file as a whole is flagged on it, and such a file proves nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from procurement.models import BurnInRun, UnitVerdict
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
LOG = b.BURN_PASSED.read_bytes()


def flags(kept):
    return [flag["template"] for flag in kept.flags]


def ending(**ago):
    return b.ending(LOG, (timezone.now() - timedelta(**ago)).replace(microsecond=0))


@pytest.mark.parametrize(
    ("days", "words"), [(40, "before the delivery arrived"), (-9, "has not come yet")]
)
def test_a_log_from_before_the_delivery_or_from_the_future_is_flagged_and_proves_nothing(
    days, words
):
    s = b.shop()
    delivery = b.received(s)
    b.burning(s, delivery)
    kept = b.upload(s, delivery, content=ending(days=days))
    assert any(words in flag for flag in flags(kept))
    assert set(UnitVerdict.objects.values_list("verdict", "covered_seconds")) == {
        ("inconclusive", 0)
    }
    assert not BurnInRun.objects.filter(covered_seconds__gt=0).exists()


def test_a_log_without_a_zone_from_the_day_of_arrival_is_not_flagged():
    s = b.shop()
    delivery = b.received(s)
    b.burning(s, delivery)
    kept = b.upload(s, delivery, content=ending(hours=13))
    assert kept.flags == []
    assert BurnInRun.objects.filter(covered_seconds=259200).count() == 8


def test_a_clock_that_runs_backwards_is_flagged_and_proves_nothing():
    s = b.shop()
    delivery = b.received(s)
    b.burning(s, delivery)
    turned = iter(reversed(b.STAMP.findall(LOG)))
    kept = b.upload(s, delivery, content=b.STAMP.sub(lambda _m: next(turned), LOG))
    assert any("run backwards" in flag for flag in flags(kept))
    assert not BurnInRun.objects.filter(covered_seconds__gt=0).exists()


def test_what_holds_for_the_run_holds_for_each_card_even_when_another_fails():
    """A card failed, and the run was cut off: the other cards have not passed."""
    s = b.shop()
    delivery = b.received(s)
    b.burning(s, delivery)
    b.upload(s, delivery, content=b.BURN_FAULTY.read_bytes().replace(b"100.0%", b"98.0%"))
    verdicts = set(UnitVerdict.objects.values_list("verdict", flat=True))
    assert "pass" not in verdicts
    assert "fail" in verdicts


def test_the_verdict_names_the_policy_that_the_order_pinned():
    s = b.shop()
    order = b.issued(s)
    order.evidence_policy["version"] = "contract-7"
    order.save(update_fields=["evidence_policy"])
    delivery = b.received(s, order)
    b.burning(s, delivery)
    assert b.upload(s, delivery).policy_version == "contract-7"


def test_a_file_that_breaks_the_readers_limits_is_rejected_and_the_worker_lives(monkeypatch):
    s = b.shop()
    delivery = b.received(s)
    b.burning(s, delivery)
    monkeypatch.setattr("procurement.services.evidence.MEMORY_BYTES", 20_000_000)
    kept = b.upload(s, delivery)
    assert (kept.verdict, kept.result["findings"][0]["code"]) == ("reject", "reader_limits")
