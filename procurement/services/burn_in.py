"""Burn-in runs: started from a pinned checklist, fed by evidence, passed only when nothing is open."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Max, Prefetch
from django.utils import timezone

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition
from core.messages import Message, msg
from core.models import User
from core.organisation import today
from procurement.models import (
    AnnouncedSerial,
    Asset,
    BurnInRun,
    ChecklistItem,
    ChecklistTemplate,
    Delivery,
    PurchasingPolicy,
    RunItem,
    UnitVerdict,
)
from procurement.models.burn_in import DecidedBy, ItemResult, Weight
from procurement.models.evidence import EvidenceState, VerdictChoice
from procurement.services.assets import install_assets
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.rmas import draft_rma, resolve_by_burn_in
from procurement.states import AssetStatus, BurnInStatus

CHECKLISTS = Path(__file__).parent.parent / "data" / "checklists.json"
OPEN_RUN = (BurnInStatus.RUNNING, BurnInStatus.INTERRUPTED)


class NotProven(DomainError):
    """Something that a pass rests on is open, inconclusive or too short. `open` says what."""

    code = "not_proven"

    def __init__(self, open_points: Sequence[Message]) -> None:
        first = open_points[0] if open_points else msg("Nothing is proven yet")
        super().__init__(
            msg("Not proven: %(first)s (%(n)s points open)", first=str(first), n=len(open_points))
        )
        self.open = tuple(open_points)


@transaction.atomic
def load_checklists(path: Path = CHECKLISTS) -> int:
    """Load the shipped checklist templates. A version that is there is left alone; returns how many are new."""
    made = 0
    for entry in json.loads(path.read_text(encoding="utf-8")):
        items = entry.pop("items")
        template, created = ChecklistTemplate.objects.get_or_create(
            slug=entry.pop("slug"), version=entry.pop("version"), defaults=entry
        )
        if created:
            ChecklistItem.objects.bulk_create(
                ChecklistItem(template=template, position=position, **item)
                for position, item in enumerate(items, 1)
            )
            made += 1
    return made


def template_for(kind: str) -> ChecklistTemplate:
    """The newest checklist for a kind of unit; on first use the shipped ones are loaded. Raises DomainError."""
    rows = ChecklistTemplate.objects.filter(asset_kind=kind).order_by("-version")
    found = rows.first()
    if found is None and load_checklists():
        found = rows.first()
    if found is None:
        raise DomainError(
            msg("No checklist is loaded for units of this kind. Run: manage.py load_checklists")
        )
    return found


def lock_delivery(delivery_id: int, *, action: str, by: User) -> Delivery:
    """The delivery, locked: whatever changes runs, evidence or acceptance of its units starts here."""
    return take(
        Delivery.objects.select_related("order", "vendor"), delivery_id, action=action, by=by
    )


@transaction.atomic
def start_burn_in(
    *,
    delivery_id: int,
    by: User,
    asset_ids: Sequence[int] = (),
    site: str = "",
    rack: str = "",
) -> list[BurnInRun]:
    """Start a run for each chosen unit of a delivery (none chosen: all that have no run and are not gone).

    Units not yet installed are installed first, at `site`. Raises InvalidTransition when one is not in a state to
    burn in, InputError when a unit is of another delivery.
    """
    delivery = lock_delivery(delivery_id, action="start_burn_in", by=by)
    rows = (
        Asset.objects.select_for_update(of=("self",))
        .filter(receipt_line__delivery=delivery)
        .select_related("request")
        .order_by("pk")
    )
    if asset_ids:
        assets = list(rows.filter(pk__in=asset_ids))
        if len(assets) != len(set(asset_ids)):
            raise InputError("asset_ids", msg("A unit is not of this delivery"))
    else:
        assets = [
            asset
            for asset in rows
            if asset.status in (AssetStatus.RECEIVED, AssetStatus.INSTALLED)
            and not asset.runs.filter(status__in=OPEN_RUN).exists()
        ]
    if not assets:
        raise InvalidTransition(msg("No unit of this delivery waits for a burn-in"))
    waiting = [asset.pk for asset in assets if asset.status == AssetStatus.RECEIVED]
    if waiting:
        install_assets(asset_ids=waiting, site=site, rack=rack, by=by)
        for asset in assets:
            asset.refresh_from_db(fields=["status", "version"])
    return [_start(asset, delivery, by=by) for asset in assets]


def _start(asset: Asset, delivery: Delivery, *, by: User) -> BurnInRun:
    if asset.status != AssetStatus.INSTALLED:
        raise InvalidTransition(
            msg("%(serial)s is not installed: it cannot burn in", serial=asset.serial)
        )
    if asset.runs.filter(status__in=OPEN_RUN).exists():
        raise InvalidTransition(msg("%(serial)s is burning in already", serial=asset.serial))
    template = template_for(asset.kind)
    items = list(template.items.all())
    timed = any(item.decided_by == DecidedBy.DURATION for item in items)
    attempt = asset.runs.aggregate(last=Max("attempt"))["last"] or 0
    run = BurnInRun.objects.create(
        asset=asset,
        delivery=delivery,
        template=template,
        attempt=attempt + 1,
        operator=by,
        created_by=by,
        required_seconds=PurchasingPolicy.current().burn_in_hours * 3600 if timed else 0,
    )
    RunItem.objects.bulk_create(RunItem(run=run, item=item) for item in items)
    record(
        "burn_in.started", on=run, by=by, serial=asset.serial, attempt=run.attempt,
        checklist=f"{template.slug} v{template.version}", required_seconds=run.required_seconds,
    )  # fmt: skip
    refresh_run(run)
    return run


# --- what evidence says ----------------------------------------------------------------------------------------------

RESULT_OF = {
    VerdictChoice.PASS: ItemResult.PASS,
    VerdictChoice.WARN: ItemResult.REVIEW,
    VerdictChoice.FAIL: ItemResult.FAIL,
}
# Worst first; a failure sticks whatever is uploaded after it.
ORDER = (ItemResult.FAIL, ItemResult.PASS, ItemResult.REVIEW, ItemResult.OPEN)


def verdicts_of(run: BurnInRun) -> list[UnitVerdict]:
    """What the files of this delivery, uploaded since the run's clock started, say about its unit."""
    return list(
        UnitVerdict.objects.filter(
            asset=run.asset_id,
            evidence__delivery=run.delivery_id,
            evidence__state=EvidenceState.READ,
            evidence__created_at__gte=run.clock_from,
        )
        .select_related("evidence__file")
        .order_by("evidence_id")
    )


def refresh_run(run: BurnInRun) -> bool:
    """Recompute covered time and the items that evidence decides. Returns whether a blocking item failed.

    Missing is never a pass: an item without a file that speaks of it stays open.
    """
    verdicts = verdicts_of(run)
    covered = max((verdict.covered_seconds for verdict in verdicts), default=0)
    if covered != run.covered_seconds:
        run.covered_seconds = covered
        BurnInRun.objects.filter(pk=run.pk).update(covered_seconds=covered)
    failed = False
    for row in run.items.select_related("item"):
        if row.result in (ItemResult.WAIVED, ItemResult.NOT_APPLICABLE):
            continue
        found = _decide(run, row, verdicts)
        if found is None:
            failed = failed or (
                row.result == ItemResult.FAIL and row.item.weight == Weight.BLOCKING
            )
            continue
        result, value, evidence_id = found
        # A person looked at it; only a failure that evidence shows later outweighs that.
        reviewed = row.decided_by_id is not None and result in (ItemResult.REVIEW, ItemResult.OPEN)
        if not reviewed and (row.result, row.value, row.evidence_id) != (
            result,
            value,
            evidence_id,
        ):
            row.result, row.value, row.evidence_id = result, value[:120], evidence_id
            row.decided_at = timezone.now()
            row.decided_by = None
            row.save(update_fields=["result", "value", "evidence", "decided_at", "decided_by"])
        failed = failed or (result == ItemResult.FAIL and row.item.weight == Weight.BLOCKING)
    return failed


def _decide(
    run: BurnInRun, row: RunItem, verdicts: Sequence[UnitVerdict]
) -> tuple[str, str, int | None] | None:
    """(result, measured value, evidence) of an item that no person decides; None for the others."""
    item = row.item
    if item.decided_by == DecidedBy.PERSON:
        return None
    if item.decided_by == DecidedBy.DURATION:
        enough = run.covered_seconds >= run.required_seconds
        best = max(verdicts, key=lambda verdict: verdict.covered_seconds, default=None)
        value = f"{run.covered_seconds / 3600:.1f} / {run.required_seconds / 3600:.0f} h"
        source = best.evidence_id if best is not None and best.covered_seconds else None
        return ItemResult.PASS if enough else ItemResult.OPEN, value, source
    if item.decided_by == DecidedBy.SERIAL:
        return _by_packing_list(run)
    found = [
        (_item_result(item, verdict), verdict)
        for verdict in verdicts
        if verdict.evidence.format in item.formats
    ]
    for wanted in ORDER:
        for result, verdict in found:
            if result == wanted:
                return result, _words(verdict), verdict.evidence_id
    return ItemResult.OPEN, "", None


def _item_result(item: ChecklistItem, verdict: UnitVerdict) -> str:
    if item.rules and verdict.verdict == VerdictChoice.FAIL:
        against = {reason["rule"] for reason in verdict.reasons if reason["verdict"] == "fail"}
        # The file fails for another rule: this item is not shown to hold by it, nor to be broken.
        return ItemResult.FAIL if against & set(item.rules) else ItemResult.OPEN
    return RESULT_OF.get(VerdictChoice(verdict.verdict), ItemResult.OPEN)


def _words(verdict: UnitVerdict) -> str:
    reasons = [reason["rule"] for reason in verdict.reasons if reason["verdict"] == verdict.verdict]
    return ", ".join(dict.fromkeys(reasons))[:120]


def _by_packing_list(run: BurnInRun) -> tuple[str, str, int | None]:
    announced = AnnouncedSerial.objects.filter(delivery=run.delivery_id)
    if not announced.exists():
        return ItemResult.REVIEW, "", None
    listed = announced.filter(folded_serial=run.asset.folded_serial).exists()
    return (ItemResult.PASS if listed else ItemResult.REVIEW), run.asset.serial, None


def refresh_runs(runs: Iterable[BurnInRun]) -> None:
    """Recompute open runs after evidence came; one that fails is failed by the system, the others go on."""
    for run in runs:
        if refresh_run(run) and run.status in OPEN_RUN:
            _fail(run, reason=failure_words(run), by=None)


def failure_words(run: BurnInRun) -> str:
    """Codes and findings of the blocking items that failed."""
    rows = run.items.filter(result=ItemResult.FAIL, item__weight=Weight.BLOCKING)
    return "; ".join(
        " ".join(filter(None, [row.item.code, row.value or row.note]))
        for row in rows.select_related("item")
    )


def open_points(run: BurnInRun) -> list[Message]:
    """What stands between this run and a pass."""
    points = []
    if run.covered_seconds < run.required_seconds:
        points.append(
            msg(
                "%(covered)s of %(required)s hours are covered by evidence",
                covered=f"{run.covered_seconds / 3600:.1f}",
                required=f"{run.required_seconds / 3600:.0f}",
            )
        )
    for row in run.items.select_related("item"):
        if row.item.weight != Weight.INFORMATION and not row.is_settled:
            if row.item.decided_by == DecidedBy.DURATION:
                continue
            points.append(_open_point(row))
    return points


def _open_point(row: RunItem) -> Message:
    code = row.item.code
    if row.result == ItemResult.FAIL:
        return msg("%(code)s failed", code=code)
    if row.result == ItemResult.REVIEW:
        return msg("%(code)s waits for a person to look at it", code=code)
    if row.item.decided_by == DecidedBy.EVIDENCE:
        return msg("%(code)s is open: no file proves it yet", code=code)
    return msg("%(code)s is open: nobody noted a result yet", code=code)


# --- what people say -------------------------------------------------------------------------------------------------


def _take(run_id: int, *, action: str, by: User | None, version: int | None = None) -> BurnInRun:
    """The run with its unit locked first."""
    asset_id = BurnInRun.objects.values_list("asset_id", flat=True).get(pk=run_id)
    asset = (
        Asset.objects.select_for_update(of=("self",))
        .select_related("request", "receipt_line__delivery__vendor")
        .get(pk=asset_id)
    )
    run = take(
        BurnInRun.objects.select_related("delivery"), run_id, action=action, by=by, version=version
    )
    run.asset = asset
    return run


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
    run = _take(run_id, action="decide_item", by=by)
    row = _row(run, code)
    allowed = (ItemResult.PASS, ItemResult.FAIL, ItemResult.NOT_APPLICABLE)
    if result not in allowed:
        raise InputError(
            "result",
            msg("%(value)s is not one of %(choices)s", value=result, choices=", ".join(allowed)),
            value=result,
        )
    if row.item.decided_by != DecidedBy.PERSON:
        if row.result != ItemResult.REVIEW and not (
            row.result == ItemResult.OPEN and row.item.weight == Weight.REVIEW
        ):
            raise InvalidTransition(
                msg("%(code)s is decided by evidence, not by a person", code=row.item.code)
            )
        if result == ItemResult.NOT_APPLICABLE:
            raise InputError("result", msg("Say whether it passes or fails"), value=result)
    if (result != ItemResult.PASS or row.item.decided_by != DecidedBy.PERSON) and not note.strip():
        raise InputError("note", msg("Give a reason"))
    if result == ItemResult.NOT_APPLICABLE and row.item.weight == Weight.BLOCKING:
        raise InputError(
            "result",
            msg("%(code)s is blocking: it passes, fails, or is waived by a second person",
                code=row.item.code),
            value=result,
        )  # fmt: skip
    before = row.result
    row.result, row.value, row.note = result, value[:120], note.strip()
    row.decided_by, row.decided_at = by, timezone.now()
    row.save()
    touch(run)
    record(
        "burn_in.item_decided", on=run, by=by, code=row.item.code, result=[before, result],
        value=row.value, reason=row.note,
    )  # fmt: skip
    if result == ItemResult.FAIL and row.item.weight == Weight.BLOCKING:
        _fail(run, reason=failure_words(run), by=by)
    return row


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
    for run in runs:
        known = set(run.template.items.values_list("code", flat=True))
        for code in codes:
            if code in known:
                decide_item(run_id=run.pk, code=code, result=result, by=by, note=note)
                count += 1
    if not count:
        raise InputError("codes", msg("No open run has such an item"), value=", ".join(codes))
    return count


def _row(run: BurnInRun, code: str) -> RunItem:
    row = run.items.select_related("item").filter(item__code=code).first()
    if row is None:
        raise InputError("code", msg("The checklist has no item %(code)s", code=code), value=code)
    return row


@transaction.atomic
def waive_item(*, run_id: int, code: str, reason: str, by: User) -> RunItem:
    """A second person lets an open item go, with a reason. Never the duration, never a failure."""
    run = _take(run_id, action="waive_item", by=by)
    row = _row(run, code)
    text = need_reason(reason)
    if row.item.decided_by == DecidedBy.DURATION or row.result == ItemResult.FAIL:
        raise InvalidTransition(
            msg(
                "%(code)s cannot be waived: neither the hours nor a failure can", code=row.item.code
            )
        )
    before = row.result
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
        result=[before, ItemResult.WAIVED],
    )  # fmt: skip
    return row


@transaction.atomic
def interrupt_run(*, run_id: int, reason: str, by: User, version: int | None = None) -> BurnInRun:
    """The load stopped (power, maintenance); a reason is kept."""
    run = _take(run_id, action="interrupt", by=by, version=version)
    run.reason = need_reason(reason)
    run.save(update_fields=["reason"])
    move(run, BurnInStatus.INTERRUPTED, by=by, action="burn_in.interrupted", reason=run.reason)
    return run


@transaction.atomic
def resume_run(*, run_id: int, by: User, version: int | None = None) -> BurnInRun:
    """The load goes on, and the clock starts again: the hours are continuous, and evidence from before is void."""
    run = _take(run_id, action="resume", by=by, version=version)
    run.clock_from = timezone.now()
    run.covered_seconds = 0
    run.save(update_fields=["clock_from", "covered_seconds"])
    move(run, BurnInStatus.RUNNING, by=by, action="burn_in.resumed")
    refresh_run(run)
    return run


@transaction.atomic
def complete_run(*, run_id: int, by: User, version: int | None = None) -> BurnInRun:
    """Pass the run. Raises NotProven while an item is open, evidence is inconclusive or hours are missing."""
    run = _take(run_id, action="complete", by=by, version=version)
    if refresh_run(run):
        raise NotProven([msg("%(code)s failed", code=failure_words(run))])
    points = open_points(run)
    if points:
        raise NotProven(points)
    _pass(run, by=by)
    return run


def _pass(run: BurnInRun, *, by: User) -> None:
    run.ended_at = timezone.now()
    run.save(update_fields=["ended_at"])
    move(
        run, BurnInStatus.PASSED, by=by, action="burn_in.passed",
        covered_seconds=run.covered_seconds,
    )  # fmt: skip
    move(run.asset, AssetStatus.BURNED_IN, by=by, action="asset.burned_in", attempt=run.attempt)
    resolve_by_burn_in(run)


@transaction.atomic
def complete_ready(*, delivery_id: int, by: User) -> tuple[list[BurnInRun], int]:
    """Pass every running run of a delivery that has nothing open. Returns them, and how many are not ready."""
    lock_delivery(delivery_id, action="start_burn_in", by=by)
    runs = BurnInRun.objects.filter(delivery=delivery_id, status=BurnInStatus.RUNNING)
    passed, waiting = [], 0
    for run_id in list(runs.order_by("asset_id").values_list("pk", flat=True)):
        run = _take(run_id, action="complete", by=by)
        if refresh_run(run) or open_points(run):
            waiting += 1
            continue
        _pass(run, by=by)
        passed.append(run)
    return passed, waiting


@transaction.atomic
def fail_run(*, run_id: int, reason: str, by: User, version: int | None = None) -> BurnInRun:
    """A person saw it fail: the unit is defective, an RMA is drafted, the other units go on."""
    run = _take(run_id, action="fail", by=by, version=version)
    _fail(run, reason=need_reason(reason), by=by)
    return run


def _fail(run: BurnInRun, *, reason: str, by: User | None) -> None:
    asset = (
        Asset.objects.select_for_update(of=("self",))
        .select_related("request", "receipt_line__delivery__vendor")
        .get(pk=run.asset_id)
    )
    run.reason, run.ended_at = reason, timezone.now()
    run.save(update_fields=["reason", "ended_at"])
    move(run, BurnInStatus.FAILED, by=by, action="burn_in.failed", reason=reason)
    move(asset, AssetStatus.DEFECTIVE, by=by, action="asset.found_defective", reason=reason)
    draft_rma(asset, fault=reason, fault_on=today(), run=run, by=by)
    run.asset = asset


@transaction.atomic
def abandon_run(*, run_id: int, reason: str, by: User, version: int | None = None) -> BurnInRun:
    """End a run without a verdict; a new one may start."""
    run = _take(run_id, action="abandon", by=by, version=version)
    run.reason, run.ended_at = need_reason(reason), timezone.now()
    run.save(update_fields=["reason", "ended_at"])
    move(run, BurnInStatus.ABANDONED, by=by, action="burn_in.abandoned", reason=run.reason)
    return run


def open_runs(delivery: Delivery, assets: Iterable[Any] | None = None) -> list[BurnInRun]:
    """Open runs of a delivery (of some of its units), with their units, in order of unit."""
    runs = BurnInRun.objects.filter(delivery=delivery, status__in=OPEN_RUN)
    if assets is not None:
        runs = runs.filter(asset__in=list(assets))
    return list(
        runs.select_related("asset").prefetch_related(
            Prefetch("items", RunItem.objects.select_related("item"))
        ).order_by("asset_id")
    )  # fmt: skip
