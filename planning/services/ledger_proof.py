"""The nightly proof that the ledger adds up. A finding is a defect or a tampered row, never a user's mistake."""

from __future__ import annotations

import hashlib
from decimal import Decimal

from django.db.models import Sum

from core.audit import record
from core.messages import Message, msg
from core.models import Organisation, User
from core.money import Money, round_amount
from core.outbox import notify
from core.roles import Role
from planning.models.budgets import Bucket, EntryKind, LedgerEntry
from planning.selectors.budgets import exact
from planning.selectors.exposure import exposures
from planning.states import TERMINAL_REQUEST

HALF = Decimal("0.0005")  # of the ledger's last digit: a sum on SQLite may be off by less


def prove_ledger() -> list[Message]:
    """Every invariant that does not hold, in words; empty when all hold."""
    return [*_pairs(), *_mirrors(), *_standing(), *_terminal(), *_conversions(), *_revaluations()]


def _pairs() -> list[Message]:
    """Both legs of a transfer, and of what was carried over in one currency, sum to zero."""
    rows = (
        LedgerEntry.objects.filter(kind__in=[EntryKind.TRANSFERRED, EntryKind.CARRIED])
        .order_by()
        .values_list("source", "bucket", "revision", "original_currency")
        .annotate(total=Sum("original_amount"))
    )
    return [
        msg("The legs of %(source)s sum to %(sum)s, not 0", source=source, sum=str(total))
        for source, _bucket, _revision, _currency, total in rows
        if exact(total)
    ]


def _mirrors() -> list[Message]:
    rows = LedgerEntry.objects.filter(kind=EntryKind.REVERSED).select_related("reverses")
    return [
        msg("Entry %(entry)s does not mirror entry %(of)s", entry=row.pk, of=row.reverses_id or 0)
        for row in rows.iterator()
        if row.reverses is None
        or row.amount != -row.reverses.amount
        or row.bucket != row.reverses.bucket
    ]


def _standing() -> list[Message]:
    """No request has less than nothing reserved, approved, ordered or spent in a budget."""
    rows = (
        LedgerEntry.objects.filter(request__isnull=False)
        .exclude(bucket=Bucket.ALLOTTED)
        .order_by()
        .values_list("request__number", "bucket", "budget")
        .annotate(total=Sum("amount"))
        .filter(total__lt=-HALF)
    )
    return [
        msg("Request R-%(number)s has %(sum)s in %(bucket)s of budget %(budget)s",
            number=number, sum=str(total), bucket=bucket, budget=budget)
        for number, bucket, budget, total in rows
    ]  # fmt: skip


def _terminal() -> list[Message]:
    """A request that ended holds no reservation."""
    rows = (
        LedgerEntry.objects.filter(
            request__status__in=TERMINAL_REQUEST, bucket__in=[Bucket.RESERVED, Bucket.APPROVED]
        )
        .order_by()
        .values_list("request__number", "bucket")
        .annotate(total=Sum("amount"))
        .exclude(total__range=(-HALF, HALF))
    )
    return [
        msg("Request R-%(number)s has ended and still holds %(sum)s in %(bucket)s",
            number=number, sum=str(total), bucket=bucket)
        for number, bucket, total in rows
    ]  # fmt: skip


def _conversions() -> list[Message]:
    """An amount posted in another currency than its document is the document's amount at the rate kept with it."""
    found = []
    for row in (
        LedgerEntry.objects.filter(kind__in=[EntryKind.COMMITTED, EntryKind.ACTUAL])
        .select_related("budget")
        .iterator()
    ):
        expected = round_amount(row.original_amount * row.rate, row.budget.currency)
        # The kept rate has 8 digits: that far the product may be off, plus the rounding of the amount itself.
        slack = abs(row.original_amount) * Decimal("0.00000001") + Decimal("0.01")
        if abs(expected - row.amount) > slack:
            found.append(
                msg("Entry %(entry)s: %(amount)s is not %(original)s at %(rate)s", entry=row.pk,
                    amount=str(row.amount), original=str(Money(row.original_amount, row.original_currency)),
                    rate=str(row.rate))
            )  # fmt: skip
    return found


def _revaluations() -> list[Message]:
    """A re-valuation brings what was bound to the rate kept with it, to the budget's cent."""
    rows = LedgerEntry.objects.filter(kind=EntryKind.REVALUED).select_related("budget")
    found = []
    for row in rows:
        before = exposures(
            LedgerEntry.objects.filter(
                request=row.request_id, pk__lte=row.pk, bucket__in=Bucket.values
            ).select_related("budget")
        )
        stood = [
            part.amount
            for part in before
            if (part.budget_id, part.bucket, part.currency)
            == (row.budget_id, row.bucket, row.original_currency)
        ]
        expected = round_amount(row.original_amount * row.rate, row.budget.currency)
        slack = abs(row.original_amount) * Decimal("0.00000001") + Decimal("0.02")
        if len(stood) != 1 or abs(stood[0] - expected) > slack:
            found.append(
                msg("Entry %(entry)s: what was bound for %(original)s is not at %(rate)s after it", entry=row.pk,
                    original=str(Money(row.original_amount, row.original_currency)), rate=str(row.rate))
            )  # fmt: skip
    return found


def prove_and_alarm() -> int:
    """Prove the ledger; tell finance and administrators what does not hold. Returns how many findings."""
    findings = prove_ledger()
    org = Organisation.objects.first()
    if findings and org is not None:
        record("ledger.unsound", on=org, by=None, findings=[str(finding) for finding in findings])
        people = User.objects.filter(
            is_active=True,
            memberships__role__in=[Role.FINANCE, Role.ADMINISTRATOR],
            memberships__team=None,
        ).distinct()
        for finding in findings[:20]:
            notify(
                people,
                "ledger.unsound",
                on=org,
                message=finding,
                url="/budgets/",
                revision=_key(finding),
            )
    return len(findings)


def _key(finding: Message) -> str:
    """A short key of one finding, so that the same one is told once."""

    return hashlib.sha256(str(finding).encode()).hexdigest()[:16]
