"""What a fiscal year will have cost: spent, bound, the run rate, and what is asked for by its probability."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise

from django.db.models import Sum
from django.db.models.functions import TruncMonth

from core.exchange import convert
from core.models import User
from core.money import Money, round_amount
from core.organisation import organisation, quarter_at, today
from core.quarters import Quarter
from planning.capacity import month_starts
from planning.models.budgets import Bucket, Budget, LedgerEntry
from planning.models.plans import SpendKind
from planning.selectors.budgets import balances
from planning.selectors.probabilities import values

ZERO = Decimal(0)
RUN_RATE_MONTHS = 3


@dataclass(frozen=True, slots=True)
class Forecast:
    """One kind of spend of the teams that were read, in one currency, for one fiscal year."""

    kind: str
    allotted: Decimal
    actual: Decimal
    bound: Decimal  # approved and ordered, not spent yet
    run_rate: Decimal | None  # mean of the last full months; None: none of them is in the year
    months_left: int  # full months to come
    pipeline: Decimal  # asked for, all of it
    weighed: Decimal  # asked for, by probability

    @property
    def to_come(self) -> Decimal:
        """A cloud keeps costing what it costs, unless more is bound already; what is bought is bound."""
        if self.kind == SpendKind.CLOUD and self.run_rate is not None:
            return max(self.bound, self.run_rate * self.months_left)
        return self.bound

    @property
    def low(self) -> Decimal:
        """Nothing more is approved."""
        return self.actual + self.to_come

    @property
    def expected(self) -> Decimal:
        return self.low + self.weighed

    @property
    def high(self) -> Decimal:
        """All that is asked for is approved."""
        return self.low + self.pipeline

    @property
    def left(self) -> Decimal:
        return self.allotted - self.expected


@dataclass(frozen=True, slots=True)
class Year:
    """The forecast of a fiscal year: by kind, and spent by month so far."""

    year: int
    currency: str
    first: date
    kinds: tuple[Forecast, ...]
    spent: tuple[tuple[date, Decimal], ...]  # (first of month, spent in it)

    def total(self, name: str) -> Decimal:
        return sum((getattr(row, name) for row in self.kinds), ZERO)


def forecast(user: User, *, year: int | None = None, team: int | None = None) -> Year:
    """Of the budgets that `user` may see, in the organisation's currency at today's rates. Raises MissingRate."""
    org = organisation()
    day = today(org)
    year = year or quarter_at(org=org).year
    first = Quarter(year, 1, org.fiscal_start_month).start
    end = Quarter(year, 4, org.fiscal_start_month).end
    budgets = Budget.objects.visible_to(user).filter(fiscal_year=year).select_related("team")
    if team is not None:
        budgets = budgets.filter(team=team)
    rows = list(budgets)
    sums = balances(rows)

    def here(amount: Decimal, currency: str) -> Decimal:
        return convert(Money(amount, currency), org.currency, day).amount

    likely = values()
    asked: dict[str, dict[bool, Decimal]] = defaultdict(lambda: {False: ZERO, True: ZERO})
    reserved = (
        LedgerEntry.objects.filter(budget__in=rows, bucket=Bucket.RESERVED)
        .order_by()
        .values_list("budget__kind", "budget__currency", "request__status")
        .annotate(total=Sum("amount"))
    )
    for kind, currency, status, total in reserved:
        amount = here(Decimal(total), currency)
        asked[kind][False] += amount
        asked[kind][True] += amount * Decimal(str(likely.get(status or "", 0)))
    spent_by: dict[str, dict[date, Decimal]] = defaultdict(lambda: defaultdict(lambda: ZERO))
    posted = (
        LedgerEntry.objects.filter(budget__in=rows, bucket=Bucket.ACTUAL)
        .order_by()
        .annotate(month=TruncMonth("posted_at", tzinfo=org.zone))
        .values_list("budget__kind", "budget__currency", "month")
        .annotate(total=Sum("amount"))
    )
    for kind, currency, month, total in posted:
        spent_by[kind][month.date()] += here(Decimal(total), currency)
    this_month = day.replace(day=1)
    ahead = [start for start in month_starts(first, 12)[:12] if start > this_month]
    past = [start for start in month_starts(first, 12)[:12] if start < this_month][
        -RUN_RATE_MONTHS:
    ]
    kinds = []
    for kind in SpendKind:
        mine = [row for row in rows if row.kind == kind]
        total = {
            name: sum((here(getattr(sums[row.pk], name), row.currency) for row in mine), ZERO)
            for name in ("allotted", "actual", "approved", "committed")
        }
        rate = sum((spent_by[kind][month] for month in past), ZERO) / len(past) if past else None
        kinds.append(
            Forecast(
                kind=kind,
                allotted=total["allotted"],
                actual=total["actual"],
                bound=total["approved"] + total["committed"],
                run_rate=None if rate is None else round_amount(rate, org.currency),
                months_left=len(ahead) if day < end else 0,
                pipeline=asked[kind][False],
                weighed=round_amount(asked[kind][True], org.currency),
            )
        )
    months: dict[date, Decimal] = defaultdict(lambda: ZERO)
    for found in spent_by.values():
        for month, amount in found.items():
            months[month] += amount
    return Year(year, org.currency, first, tuple(kinds), tuple(sorted(months.items())))


def course(
    found: Year, on: date
) -> list[tuple[date, str, Decimal, Decimal | None, Decimal | None]]:
    """Points of the chart, summed up by month: what is spent, then evenly to the year's end with its band."""
    starts = month_starts(found.first, 12)
    spent = dict(found.spent)
    rows: list[tuple[date, str, Decimal, Decimal | None, Decimal | None]] = []
    total = ZERO
    for start, following in pairwise(starts):
        if start > on:
            break
        total += sum(
            (amount for month, amount in spent.items() if start <= month < following), ZERO
        )
        rows.append((start, "spent", total, None, None))
    ahead = [start for start in starts[:12] if start > on]
    if rows and ahead:
        rows.append((rows[-1][0], "forecast", total, total, total))  # the two lines meet
    for n, start in enumerate(ahead, start=1):
        share = Decimal(n) / len(ahead)
        low, expected, high = (
            total + (found.total(name) - found.total("actual")) * share
            for name in ("low", "expected", "high")
        )
        rows.append((start, "forecast", expected, low, high))
    return rows
