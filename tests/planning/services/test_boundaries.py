"""Where a day, a quarter and a fiscal year end: on the organisation's clock, across clock changes and leap days."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import time_machine

from core.money import Money
from core.organisation import quarter_at, today
from planning.models.budgets import Bucket
from planning.services import approvals, spending
from planning.services.ledger import budget_for
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("zone", "start_month", "instant", "day", "quarter"),
    [
        # 23:30 local on the last day, and half an hour later
        ("Asia/Shanghai", 1, datetime(2026, 12, 31, 15, 30), date(2026, 12, 31), "2026Q4"),
        ("Asia/Shanghai", 1, datetime(2026, 12, 31, 16, 0), date(2027, 1, 1), "2027Q1"),
        ("America/New_York", 10, datetime(2026, 10, 1, 3, 30), date(2026, 9, 30), "2026Q4"),
        ("America/New_York", 10, datetime(2026, 10, 1, 4, 0), date(2026, 10, 1), "2027Q1"),
        # a fiscal year from April: the clocks went forward two days before its last day
        ("Europe/Berlin", 4, datetime(2027, 3, 31, 21, 30), date(2027, 3, 31), "2027Q4"),
        ("Europe/Berlin", 4, datetime(2027, 3, 31, 22, 0), date(2027, 4, 1), "2028Q1"),
        # a fiscal year from November: the repeated hour lies in October
        ("Europe/Berlin", 11, datetime(2026, 10, 31, 22, 30), date(2026, 10, 31), "2026Q4"),
        ("Europe/Berlin", 11, datetime(2026, 10, 31, 23, 0), date(2026, 11, 1), "2027Q1"),
        # half-hour and far-east zones
        ("Asia/Kolkata", 1, datetime(2026, 9, 30, 18, 29), date(2026, 9, 30), "2026Q3"),
        ("Pacific/Kiritimati", 1, datetime(2026, 9, 30, 10, 0), date(2026, 10, 1), "2026Q4"),
        # a leap day ends a quarter that starts in December
        ("Asia/Shanghai", 12, datetime(2028, 2, 29, 15, 59), date(2028, 2, 29), "2028Q1"),
        ("Asia/Shanghai", 12, datetime(2028, 2, 29, 16, 0), date(2028, 3, 1), "2028Q2"),
    ],
)
def test_approvals_and_orders_count_on_the_local_day(zone, start_month, instant, day, quarter):
    with time_machine.travel(instant.replace(tzinfo=UTC), tick=False):
        w = builders.world(time_zone=zone, fiscal_start_month=start_month)
        assert (today(), str(quarter_at())) == (day, quarter)
        request = builders.approved(w, "1000")
        budget = budget_for(team=w.team, quarter=quarter_at(), kind="purchase")
        assert budget.label == quarter
        assert budget.entries.get(bucket=Bucket.APPROVED).amount == 1000
        spending.commit(request_id=request.pk, amount=Money(Decimal(1000), "CNY"),
                        source="order:1", by=w.procurement)  # fmt: skip
        assert request.ledger.get(bucket=Bucket.COMMITTED).budget == budget


@pytest.mark.parametrize(
    ("zone", "first", "last"),
    [
        # the day of 23 hours and the day of 25: the stand-in decides to its last minute and not after
        ("Europe/Berlin", datetime(2027, 3, 27, 23, 0), datetime(2027, 3, 28, 21, 59)),
        ("America/New_York", datetime(2026, 11, 1, 4, 0), datetime(2026, 11, 2, 4, 59)),
    ],
)
def test_a_stand_ins_day_is_the_whole_local_day_also_when_the_clocks_change(zone, first, last):
    first, last = first.replace(tzinfo=UTC), last.replace(tzinfo=UTC)
    with time_machine.travel(first, tick=False) as clock:
        w = builders.world(time_zone=zone)
        builders.fund(w, "5000")
        day = today()
        approvals.delegate(principal=w.lead, delegate=w.outsider, first_day=day, last_day=day,
                           by=w.lead)  # fmt: skip
        found = [builders.in_review(w) for _ in range(2)]
        clock.move_to(last, tick=False)
        assert today() == day
        builders.vote(found[0], w.outsider)
        clock.move_to(last.replace(minute=59, second=59), tick=False)
        assert today() == day
        clock.shift(1)
        assert today() > day
        with pytest.raises(approvals.NotPermitted):
            builders.vote(found[1], w.outsider)
