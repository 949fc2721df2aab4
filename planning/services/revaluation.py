"""When rates move, what is bound in another currency is bound for more or less: told by entries of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db import transaction

from core.audit import record
from core.exchange import MissingRate, rate_on
from core.jobs import retry, submit
from core.messages import Message, msg
from core.models import ExchangeRate as ExchangeRateRow
from core.models import Job, Organisation, User
from core.money import ExchangeRate, Money, minor_unit, round_amount
from core.organisation import organisation, today
from core.outbox import notify
from core.roles import Role
from planning.models.budgets import Budget, EntryKind, LedgerEntry
from planning.models.requests import CapacityRequest
from planning.selectors.budgets import balance
from planning.selectors.exposure import BUCKETS, Exposure, open_exposures
from planning.services.ledger import lock_standing, policy_in_force, post, require_keeper
from planning.services.moves import lock_request

TASK = "planning.tasks.revalue_now"
KEY = "revaluation"


@dataclass(frozen=True, slots=True)
class Revalued:
    """How many entries were made, and which documents have no rate to be valued at."""

    entries: int
    left: tuple[Message, ...]

    @property
    def message(self) -> Message:
        """What came of it, in words."""
        if self.left:
            return msg(
                "Re-valuations posted: %(n)s. Left for want of a rate: %(left)s. %(first)s",
                n=self.entries, left=len(self.left), first=self.left[0],
            )  # fmt: skip
        if not self.entries:
            return msg("No rate moved for what is bound in other currencies.")
        return msg("Re-valuations posted: %(n)s", n=self.entries)


def start(*, by: User | None) -> Job | None:
    """Queue a run of `revalue`: for finance (`by`), or by the clock (None) where the policy in force names a share.

    One run at a time; asked for again with the same rates and the same ledger it is the same run, started again where
    it failed or was stopped. None: the rules ask for none. Raises NotPermitted.
    """
    least = _least() if by is None else Decimal(0)
    if by is not None:
        require_keeper(by)
    if least is None:
        return None
    running = newest_run()
    if running is not None and running.is_open:
        return running
    rate = ExchangeRateRow.objects.order_by("-pk").values_list("pk", flat=True).first()
    entry = LedgerEntry.objects.order_by("-pk").values_list("pk", flat=True).first()
    day = today().isoformat()
    key = f"{KEY}:{day}:{rate or 0}:{entry or 0}:{least.normalize():f}"
    before = Job.objects.filter(key=key).first()
    if before is not None and before.status == Job.Status.DONE:
        return before
    with transaction.atomic():
        job = submit(TASK, by.pk if by else None, day, key=key, owner=by)
        if not job.is_open:
            job = retry(job, owner=by)
        record("revaluation.started", on=organisation(), by=by, run=key, day=day)
    return job


def newest_run() -> Job | None:
    """The run that goes on, else the last one; None before the first."""
    return Job.objects.filter(task=TASK).order_by("-created_at").first()


def _least() -> Decimal | None:
    """From which share of movement on the clock re-values; None: never."""
    policy = policy_in_force()
    return (
        None if policy is None or not Organisation.objects.exists() else policy.revalue_from
    )  # fmt: skip


def revalue(
    *, by: User | None, day: date | None = None, progress: Callable[[int, Message], None] | None = None
) -> Revalued:  # fmt: skip
    """Value what is approved or ordered in another currency than its budget at the rates of `day` (today when None),
    each request in a transaction of its own.

    By finance (`by`) every movement counts; by the clock (None) those of at least the policy's share, and none where
    the policy names no share. Doing it again on the same rates makes nothing, also where a run was broken off. Raises
    NotPermitted.
    """
    least = _least() if by is None else Decimal(0)
    if by is not None:
        require_keeper(by)
    if least is None:
        return Revalued(0, ())
    day, made, left = day or today(), 0, []
    requests = sorted({row.request_id for row in open_exposures()})
    try:
        for at, request_id in enumerate(requests):
            if progress is not None:
                progress(
                    100 * at // len(requests),
                    msg("Request %(n)s of %(all)s", n=at + 1, all=len(requests)),
                )
            try:
                made += _revalue_request(request_id, day, least, by)
            except MissingRate as error:
                left.append(error.message)
    finally:
        found = Revalued(made, tuple(left))
        if progress is not None:
            record(
                "revaluation.ended", on=organisation(), by=by, day=day.isoformat(), entries=made,
                left=[str(message) for message in found.left],
            )  # fmt: skip
    if progress is not None:
        progress(99, found.message)
    return found


@transaction.atomic
def _revalue_request(request_id: int, day: date, least: Decimal, by: User | None) -> int:
    request = lock_request(request_id)
    budgets, _standing = lock_standing(request, BUCKETS)
    moved: dict[int, Decimal] = defaultdict(Decimal)
    made = 0
    for row in open_exposures(request_id):
        budget = budgets.get(row.budget_id)
        if budget is None or budget.closed_at is not None:
            continue
        rate = _into(rate_on(row.currency, budget.currency, day), row.currency, budget.currency)
        due = round_amount(row.original * rate.rate, budget.currency)
        unit = minor_unit(budget.currency)
        # A part may hold a fraction of the smallest unit: less than one of them is no movement.
        if abs(due - row.amount) < max(unit, least * row.amount):
            continue
        delta = round_amount(due - row.amount, budget.currency)
        _post(row, budget=budget, request=request, delta=delta, rate=rate, by=by)
        moved[budget.pk] += delta
        made += 1
    for budget_id, delta in moved.items():
        budget = budgets[budget_id]
        left = balance(budget).available
        record(
            "budget.revalued", on=budget, by=by, request=request.pk, amount=str(Money(delta, budget.currency)),
            available=str(Money(left, budget.currency)),
        )  # fmt: skip
        if left < 0 <= left + delta:
            people = User.objects.filter(
                is_active=True, memberships__role=Role.FINANCE, memberships__team=None
            )
            notify(
                people.distinct(), "budget.revalued", on=budget,
                message=msg("Exchange rates moved: %(budget)s is over-committed by %(amount)s",
                            budget=str(budget), amount=str(Money(-left, budget.currency))),
                url=budget.get_absolute_url(), revision=day.isoformat(),
            )  # fmt: skip
    return made


def _into(rate: ExchangeRate, base: str, quote: str) -> ExchangeRate:
    """The rate as what one `base` costs, with the digits that the ledger keeps."""
    value = rate.rate if rate.base == base else Decimal(1) / rate.rate
    return ExchangeRate(base, quote, round(value, 8), rate.as_of, rate.source)


def _post(
    row: Exposure, *, budget: Budget, request: CapacityRequest, delta: Decimal, rate: ExchangeRate,
    by: User | None,
) -> None:  # fmt: skip
    source = f"revaluation:{row.currency}:request:{request.pk}"
    before = LedgerEntry.objects.filter(
        budget=budget, source=source, kind=EntryKind.REVALUED, bucket=row.bucket
    ).count()
    post(
        budget=budget, kind=EntryKind.REVALUED, bucket=row.bucket, amount=delta, source=source,
        revision=before, request=request, original=Money(round(row.original, 6), row.currency),
        rate=rate, by=by,
    )  # fmt: skip
