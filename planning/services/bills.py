"""Lines of cloud bills become actual entries of the budget ledger: once per source, request or team, and month."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from decimal import Decimal

from django.db import transaction
from django.db.models import Sum

from core.audit import record
from core.errors import DomainError
from core.exchange import rate_on
from core.messages import Message, msg
from core.models import Team, User
from core.money import Money
from core.organisation import organisation
from core.policies import require
from core.quarters import Quarter
from core.transitions import lock
from planning import telemetry_policies as may
from planning.models.budgets import Bucket, EntryKind, LedgerEntry
from planning.models.plans import SpendKind
from planning.models.requests import CapacityRequest
from planning.models.telemetry import BillLine, TelemetrySource
from planning.services.ledger import budget_for, lock_budgets, post
from planning.services.spending import post_actual

_Group = tuple[date, int | None, int | None, str]  # month, request number, team, currency


@transaction.atomic
def post_bill(*, source_id: int, by: User) -> tuple[int, list[Message]]:
    """Post what the source's lines add up to and is not in the ledger yet. Returns (entries, what could not be posted).

    Lines tagged with a request draw on what is ordered for it; other lines of a team go to its cloud budget of the
    month's quarter. A line without either is told, never guessed. Bills that grow are posted by their growth.
    """
    require(may.can_post_bills(by))
    source = lock(TelemetrySource.objects.all(), source_id)
    sums: dict[_Group, Decimal] = defaultdict(Decimal)
    for line in BillLine.objects.filter(source=source).order_by("day", "pk"):
        group = (line.day.replace(day=1), line.request_number, line.team_id, line.currency)
        sums[group] += line.amount
    for group in _posted_groups(source):
        sums.setdefault(group, Decimal(0))  # its lines were taken back
    posted, left = 0, []
    for group, amount in sorted(sums.items(), key=lambda item: (item[0][0], str(item[0][1:]))):
        try:
            with transaction.atomic():
                posted += _post_group(source, group, amount, by)
        except DomainError as error:
            left.append(error.message)
    if posted:
        record("bill.posted", on=source, by=by, team=source.team, entries=posted)
    return posted, left


def _posted_groups(source: TelemetrySource) -> list[_Group]:
    """The groups of which something is in the ledger, from the names of their documents."""
    found = []
    documents = LedgerEntry.objects.filter(
        source__startswith=f"bill:{source.pk}:", bucket=Bucket.ACTUAL, kind=EntryKind.ACTUAL
    ).values_list("source", flat=True)
    for document in set(documents):
        _bill, _source, month, number, team, currency = document.split(":")
        first = date.fromisoformat(f"{month}-01")
        found.append(
            (first, int(number) if number else None, int(team) if team else None, currency)
        )
    return found


def _post_group(source: TelemetrySource, group: _Group, amount: Decimal, by: User) -> int:
    month, number, team_id, currency = group
    quarter = Quarter.of(month, organisation().fiscal_start_month)
    document = f"bill:{source.pk}:{month:%Y-%m}:{number or ''}:{team_id or ''}:{currency}"
    before = LedgerEntry.objects.filter(
        source=document, bucket=Bucket.ACTUAL, kind=EntryKind.ACTUAL
    ).aggregate(sum=Sum("original_amount"))["sum"] or Decimal(0)
    rest = Money(amount - before, currency).rounded()
    if rest.amount == 0:
        return 0
    revision = LedgerEntry.objects.filter(source=document, bucket=Bucket.ACTUAL).count()
    if number is not None:
        request = CapacityRequest.objects.get(number=number)
        post_actual(request_id=request.pk, amount=rest, source=document, by=by, revision=revision)
        return 1
    if team_id is None:
        raise DomainError(
            msg(
                "%(amount)s of %(month)s belong to no request and no team, and wait for a cloud budget of %(quarter)s: "
                "tag the lines or map them in the source",
                amount=str(rest),
                month=f"{month:%Y-%m}",
                quarter=str(quarter),
            )
        )
    team = Team.objects.get(pk=team_id)
    budget = lock_budgets([budget_for(team=team, quarter=quarter, kind=SpendKind.CLOUD).pk])
    (target,) = budget.values()
    rate = rate_on(currency, target.currency, month)
    own = rest if rate.base == rate.quote else rest.convert(rate)
    post(
        budget=target, kind=EntryKind.ACTUAL, bucket=Bucket.ACTUAL, amount=own.amount, source=document,
        by=by, revision=revision, original=rest, rate=None if rate.base == rate.quote else rate,
    )  # fmt: skip
    record("budget.spent", on=target, by=by, amount=str(own), source=document)
    return 1
