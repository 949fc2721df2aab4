"""What people say on a run: results they noted, items they let go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import User
from core.organisation import today
from procurement.models import BurnInRun, RunItem
from procurement.models.burn_in import DecidedBy, ItemResult, Weight
from procurement.services.moves import need_reason, touch
from procurement.services.run_proof import OPEN_RUN, fail, failure_words, lock_delivery, take_run


@transaction.atomic
def decide_item(
    *,
    run_id: int,
    code: str,
    result: str,
    by: User,
    value: str = "",
    note: str = "",
) -> RunItem:
    """Note what a person found on an item: pass, fail or na (with a note).

    Items that evidence or the clock decides are not for people, except those for review: a person looks at them, and
    gives a reason. Raises InputError or InvalidTransition.
    """
    run = take_run(run_id, action="decide_item", by=by)
    row = _row(run, code)
    _decide(run, [row], result=result, value=value, note=note, by=by)
    return row


def _decide(
    run: BurnInRun, rows: Sequence[RunItem], *, result: str, value: str, note: str, by: User
) -> None:
    """The same finding on items of one locked run: checked, kept, and told in one entry of the trail."""
    before = [row.result for row in rows]
    for row in rows:
        _check(row, result, note)
        row.result, row.value, row.note = result, value[:120], note.strip()
        row.decided_by, row.decided_at = by, timezone.now()
    RunItem.objects.bulk_update(rows, ["result", "value", "note", "decided_by", "decided_at"])
    touch(run)
    record(
        "burn_in.item_decided", on=run, by=by, code=", ".join(row.item.code for row in rows),
        result=[", ".join(dict.fromkeys(before)), result], value=value[:120], reason=note.strip(),
    )  # fmt: skip
    if result == ItemResult.FAIL and any(row.item.weight == Weight.BLOCKING for row in rows):
        fail(run, reason=failure_words(run), by=by)


def _check(row: RunItem, result: str, note: str) -> None:
    """Raise what speaks against a person noting `result` on the item."""
    allowed = (ItemResult.PASS, ItemResult.FAIL, ItemResult.NOT_APPLICABLE)
    if result not in allowed:
        raise InputError(
            "result",
            msg("%(value)s is not one of %(choices)s", value=result, choices=", ".join(allowed)),
            value=result,
        )
    by_person = row.item.decided_by == DecidedBy.PERSON or (
        row.item.decided_by == DecidedBy.EITHER and row.evidence_id is None
    )
    if not by_person:
        if row.result != ItemResult.REVIEW and not (
            row.result == ItemResult.OPEN and row.item.weight == Weight.REVIEW
        ):
            raise InvalidTransition(
                msg("%(code)s is decided by evidence, not by a person", code=row.item.code)
            )
        if row.item.decided_by == DecidedBy.PROMISE and result != ItemResult.FAIL:
            raise InvalidTransition(
                msg(
                    "%(code)s: a missed promise is waived by a second person, or the unit fails by it",
                    code=row.item.code,
                )
            )
        if result == ItemResult.NOT_APPLICABLE:
            raise InputError("result", msg("Say whether it passes or fails"), value=result)
    if (result != ItemResult.PASS or not by_person) and not note.strip():
        raise InputError(
            "note",
            msg(
                "%(code)s: fill in the note; it is needed for a failure, for “not applicable” and for items for review",
                code=row.item.code,
            ),
        )
    if result == ItemResult.NOT_APPLICABLE and row.item.weight == Weight.BLOCKING:
        raise InputError(
            "result",
            msg("%(code)s is blocking: it passes, fails, or is waived by a second person",
                code=row.item.code),
            value=result,
        )  # fmt: skip


@transaction.atomic
def decide_items(
    *,
    delivery_id: int,
    codes: Sequence[str],
    result: str,
    by: User,
    run_ids: Sequence[int] = (),
    note: str = "",
) -> int:
    """The same finding on several items of several open runs of a delivery (none named: all), or on none of them."""
    lock_delivery(delivery_id, action="start_burn_in", by=by)
    runs = BurnInRun.objects.filter(delivery=delivery_id, status__in=OPEN_RUN).order_by("asset_id")
    if run_ids:
        runs = runs.filter(pk__in=run_ids)
    count = 0
    for run_id in list(runs.values_list("pk", flat=True)):
        run = take_run(run_id, action="decide_item", by=by)
        rows = list(run.items.select_related("item").filter(item__code__in=codes))
        if rows:
            _decide(run, rows, result=result, value="", note=note, by=by)
            count += len(rows)
    if not count:
        raise InputError("codes", msg("No open run has such an item"), value=", ".join(codes))
    return count


def _row(run: BurnInRun, code: str) -> RunItem:
    row = run.items.select_related("item").filter(item__code=code).first()
    if row is None:
        raise InputError("code", msg("The checklist has no item %(code)s", code=code), value=code)
    return row


@transaction.atomic
def waive_item(
    *, run_id: int, code: str, reason: str, by: User, expires_on: date | None = None
) -> RunItem:
    """A second person lets an open item go, with a reason, for good or until a day. Never the duration or a failure."""
    run = take_run(run_id, action="waive_item", by=by)
    row = _row(run, code)
    text = need_reason(reason)
    if row.item.decided_by == DecidedBy.DURATION or row.result == ItemResult.FAIL:
        raise InvalidTransition(
            msg(
                "%(code)s cannot be waived: neither the hours nor a failure can", code=row.item.code
            )
        )
    if expires_on is not None and expires_on <= today():
        raise InputError(
            "expires_on",
            msg("A waiver ends in the future, not on %(day)s", day=expires_on.isoformat()),
            value=expires_on,
            limit=today(),
        )
    before = row.result
    row.expires_on = expires_on
    row.result, row.note, row.decided_by, row.decided_at = (
        ItemResult.WAIVED,
        text,
        by,
        timezone.now(),
    )
    row.save()
    touch(run)
    record(
        "burn_in.item_waived", on=run, by=by, code=row.item.code, reason=text,
        result=[before, ItemResult.WAIVED], until=expires_on.isoformat() if expires_on else None,
    )  # fmt: skip
    return row
