"""What if: an order moves by quarters, a rate or a card's price changes. Nothing is written until it is proposed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

from django.db import transaction
from django.db.models import Sum

from core.audit import record
from core.errors import InputError, NotPermitted
from core.messages import msg
from core.models import Team, User
from core.money import Money, round_amount
from core.organisation import organisation, today
from core.quarters import Quarter, months_later
from planning import policies
from planning.capacity import ON_ORDER, Month, pool
from planning.models.budgets import Bucket, Budget, BudgetChange, LedgerEntry
from planning.models.plans import PlanChoice
from planning.selectors.budgets import Balance, balances
from planning.selectors.capacity import MONTHS, calendar
from planning.services import budget_changes
from planning.services.ledger import budget_for

ZERO = Decimal(0)
OPEN = (Bucket.RESERVED, Bucket.APPROVED, Bucket.COMMITTED)
MOST = Decimal(1000)  # per cent
MOST_QUARTERS = 8  # either way


@dataclass(frozen=True, slots=True)
class Change:
    """What is tried. An empty name leaves that part as it is."""

    order: str = ""  # as in the ledger: order:PO-2027-0001
    quarters: int = 0
    currency: str = ""  # of documents in another currency than their budget's
    rate_percent: Decimal = ZERO  # 10: one unit costs ten per cent more
    accelerator: str = ""  # of plans that are not ordered yet
    price_percent: Decimal = ZERO


@dataclass(slots=True)
class Line:
    """One budget before and after. `moved` is what comes in (+) or goes out (-), by sum."""

    label: str
    team_id: int
    kind: str
    quarter: Quarter
    budget: Budget | None  # None: it does not exist yet
    before: Balance
    moved: dict[str, Decimal] = field(default_factory=lambda: defaultdict(lambda: ZERO))

    @property
    def after(self) -> Balance:
        values = {name: getattr(self.before, name) + amount for name, amount in self.moved.items()}
        return replace(self.before, **values)

    @property
    def need(self) -> Decimal:
        """By how much what is bound grows (or shrinks)."""
        return self.before.available - self.after.available


@dataclass(frozen=True, slots=True)
class CapacityLine:
    """Usable cards by month, before and after."""

    accelerator: str
    months: tuple[tuple[Month, Month], ...]


@dataclass(frozen=True, slots=True)
class Move:
    """What of an order goes from one budget to another."""

    giver_id: int
    receiver: Line
    request_id: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Outcome:
    """Every budget line that moves, and every capacity line."""

    lines: tuple[Line, ...]
    capacity: tuple[CapacityLine, ...]
    moves: tuple[Move, ...] = ()


def orders_to_move() -> list[str]:
    """Orders that stand in the ledger, for a list to pick from."""
    rows = (
        LedgerEntry.objects.filter(bucket=Bucket.COMMITTED, source__startswith="order:")
        .order_by()
        .values_list("source")
        .annotate(total=Sum("amount"))
        .filter(total__gt=0)
    )
    return sorted(source for source, _total in rows)


def what_if(change: Change, *, by: User) -> Outcome:
    """The budgets and pools that would move. Writes nothing. Raises NotPermitted or InputError."""
    if not policies.can_try_scenarios(by):
        raise NotPermitted()
    for name in ("rate_percent", "price_percent"):
        value: Decimal = getattr(change, name)
        if not value.is_finite() or not Decimal(-100) < value <= MOST:
            raise InputError(
                name,
                msg("%(field)s is %(value)s; it must be within %(limit)s %(unit)s", field=name,
                    value=str(value), limit=f"-100 … {MOST}", unit="%"),
                value=value, limit=f"-100 … {MOST}",
            )  # fmt: skip
    if abs(change.quarters) > MOST_QUARTERS:
        raise InputError(
            "quarters", msg("At most eight quarters"), value=change.quarters, limit=MOST_QUARTERS
        )
    book = _Book()
    moves = _move_order(book, change) if change.order and change.quarters else []
    if change.currency and change.rate_percent:
        _change_rate(book, change)
    if change.accelerator and change.price_percent:
        _change_price(book, change)
    lines = [line for line in book.lines.values() if any(line.moved.values())]
    lines.sort(key=lambda line: (line.label, str(line.quarter)))
    return Outcome(tuple(lines), tuple(_capacity(change, by)), tuple(moves))


class _Book:
    """Open budgets with their balances, and lines for those that do not exist yet."""

    def __init__(self) -> None:
        month = organisation().fiscal_start_month
        rows = list(Budget.objects.filter(closed_at=None).select_related("team"))
        sums = balances(rows)
        self.lines = {
            (row.team_id, row.kind, row.period(month)): Line(
                str(row), row.team_id, row.kind, row.period(month), row, sums[row.pk]
            )
            for row in rows
        }
        self.by_id = {line.budget.pk: line for line in self.lines.values() if line.budget}

    def at(self, line: Line, quarter: Quarter) -> Line:
        key = (line.team_id, line.kind, quarter)
        if key not in self.lines:
            team = line.budget.team if line.budget else ""
            self.lines[key] = Line(
                f"{team} {quarter}", line.team_id, line.kind, quarter, None,
                Balance(line.before.currency),
            )  # fmt: skip
        return self.lines[key]


def _move_order(book: _Book, change: Change) -> list[Move]:
    rows = (
        LedgerEntry.objects.filter(source=change.order, bucket=Bucket.COMMITTED)
        .order_by()
        .values_list("budget", "request")
        .annotate(total=Sum("amount"))
    )
    found = []
    for budget_id, request_id, total in rows:
        line = book.by_id.get(budget_id)
        if line is None:
            continue
        # what was invoiced of it stays where it was spent
        standing = LedgerEntry.objects.filter(
            budget=budget_id, request=request_id, bucket=Bucket.COMMITTED
        ).aggregate(total=Sum("amount"))["total"]
        amount = min(Decimal(total), Decimal(standing or 0))
        if amount > 0:
            receiver = book.at(line, line.quarter.shift(change.quarters))
            line.moved[Bucket.COMMITTED] -= amount
            receiver.moved[Bucket.COMMITTED] += amount
            found.append(Move(budget_id, receiver, request_id, amount))
    if not found:
        raise InputError(
            "order", msg("No order %(order)s stands in an open quarter", order=change.order),
            value=change.order,
        )  # fmt: skip
    return found


def _standing() -> Iterable[tuple[int, str, int, Decimal]]:
    """(budget, sum, request, amount) of all that is open."""
    rows = (
        LedgerEntry.objects.filter(bucket__in=OPEN, request__isnull=False, budget__closed_at=None)
        .order_by()
        .values_list("budget", "bucket", "request")
        .annotate(total=Sum("amount"))
        .filter(total__gt=0)
    )
    return [(budget, bucket, request, Decimal(total)) for budget, bucket, request, total in rows]


def _plans(requests: Iterable[int]) -> dict[int, PlanChoice]:
    rows = PlanChoice.objects.filter(revision__request__in=list(requests))
    return {
        plan.revision.request_id: plan
        for plan in rows.select_related("revision").order_by("revision__number")
    }


def _add(line: Line, bucket: str, amount: Decimal, percent: Decimal) -> None:
    line.moved[bucket] += round_amount(amount * percent / 100, line.before.currency)


def _change_rate(book: _Book, change: Change) -> None:
    standing = list(_standing())
    plans = _plans({request for _budget, _bucket, request, _amount in standing})
    ordered = dict(
        LedgerEntry.objects.filter(bucket=Bucket.COMMITTED, kind="committed")
        .order_by("pk")
        .values_list("request", "original_currency")
    )
    for budget_id, bucket, request_id, amount in standing:
        line = book.by_id[budget_id]
        plan = plans.get(request_id)
        currency = (
            ordered.get(request_id)
            if bucket == Bucket.COMMITTED
            else plan.currency
            if plan
            else None
        )
        if currency == change.currency != line.before.currency:
            _add(line, bucket, amount, change.rate_percent)


def _change_price(book: _Book, change: Change) -> None:
    standing = [row for row in _standing() if row[1] != Bucket.COMMITTED]  # an order has its price
    plans = _plans({request for _budget, _bucket, request, _amount in standing})
    for budget_id, bucket, request_id, amount in standing:
        plan = plans.get(request_id)
        if plan is not None and plan.accelerator_slug == change.accelerator:
            _add(book.by_id[budget_id], bucket, amount, change.price_percent)


def _capacity(change: Change, by: User) -> Iterable[CapacityLine]:
    if not (change.order and change.quarters):
        return
    number = change.order.removeprefix("order:")
    found = calendar(by)
    for row in found.pools:
        moved = [
            replace(item, first=_shift(item.first, change.quarters))
            if item.kind == ON_ORDER and item.label == number
            else item
            for item in row.supply
        ]
        if moved == list(row.supply):
            continue
        after = pool(
            row.accelerator, moved, row.demand, first=found.first, months=MONTHS,
            lead_days=row.lead_days,
        )  # fmt: skip
        yield CapacityLine(row.accelerator, tuple(zip(row.months, after.months, strict=True)))


def _shift(day: date | None, quarters: int) -> date | None:
    """The same day `quarters` later or earlier, never before today; None where no day is known."""
    return None if day is None else max(months_later(day, 3 * quarters), today())


@transaction.atomic
def propose(change: Change, *, reason: str, by: User) -> list[BudgetChange]:
    """Turn what would move into changes of the budgets: an order is carried to its new quarter with its money, and what
    gets dearer is asked for as an allotment. They wait for a second person where the policy says so.

    Raises NotPermitted or InputError.
    """
    if not policies.can_keep_budgets(by):
        raise NotPermitted()
    if not reason.strip():
        raise InputError("reason", msg("Give a reason"))
    outcome = what_if(change, by=by)
    made = [
        budget_changes.carry_order(
            giver_id=move.giver_id,
            receiver_id=_budget_of(move.receiver).pk,
            order=change.order,
            request_id=move.request_id,
            amount=move.amount,
            reason=reason,
            by=by,
        )
        for move in outcome.moves
    ]
    # a dearer rate or card needs new money
    for line in what_if(replace(change, order="", quarters=0), by=by).lines:
        if line.need > 0 and line.budget is not None:
            made.append(
                budget_changes.allot(
                    budget_id=line.budget.pk, amount=line.need, reason=reason, by=by
                )
            )
    if not made:
        raise InputError("change", msg("Nothing would have to be moved"))
    teams = {row.budget.team for row in made}
    sums: dict[str, Decimal] = defaultdict(lambda: ZERO)
    for row in made:
        sums[row.budget.currency] += row.amount
    record(
        "scenario.proposed", on=made[0], by=by, reason=reason, changes=[row.pk for row in made],
        # of several teams it is an entry of none: one would read the others' there
        team=teams.pop() if len(teams) == 1 else None,
        totals=[str(Money(amount, currency)) for currency, amount in sorted(sums.items())],
    )  # fmt: skip
    return made


def _budget_of(line: Line) -> Budget:
    if line.budget is not None:
        return line.budget
    team = Team.objects.get(pk=line.team_id)
    return budget_for(
        team=team, quarter=line.quarter, kind=line.kind, currency=line.before.currency
    )
