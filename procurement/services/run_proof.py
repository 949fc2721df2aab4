"""What evidence makes of a run: covered hours, the items that files decide, what is open, and failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Prefetch
from django.utils import timezone, translation
from django.utils.text import Truncator
from django.utils.translation import gettext

from core.errors import DomainError
from core.messages import Message, msg, plural
from core.models import User
from core.organisation import organisation, today
from procurement.identity import IDENTITY_ITEM, MODEL_DIFFERS
from procurement.models import (
    AnnouncedSerial,
    Asset,
    BurnInRun,
    ChecklistItem,
    Delivery,
    RunItem,
    UnitVerdict,
)
from procurement.models.burn_in import DecidedBy, ItemResult, Weight
from procurement.models.evidence import EvidenceState, VerdictChoice
from procurement.selectors.promised import (
    PromiseResult,
    deciding,
    promised_against_measured,
)
from procurement.services.moves import move, take
from procurement.services.rmas import draft_rma
from procurement.states import AssetStatus, BurnInStatus

OPEN_RUN = (BurnInStatus.RUNNING, BurnInStatus.INTERRUPTED)


class NotProven(DomainError):
    """Something that a pass rests on is open, inconclusive or too short. `open` says what."""

    code = "not_proven"

    def __init__(self, open_points: Sequence[Message]) -> None:
        first = open_points[0] if open_points else msg("Nothing is proven yet")
        told: dict[str, Message | int] = {"first": first, "n": len(open_points)}
        super().__init__(
            plural(
                len(open_points),
                msg("Not proven: %(first)s (%(n)s point open)", **told),
                msg("Not proven: %(first)s (%(n)s points open)", **told),
            )
        )
        self.open = tuple(open_points)


def lock_delivery(delivery_id: int, *, action: str, by: User) -> Delivery:
    """The delivery, locked: whatever changes runs, evidence or acceptance of its units starts here."""
    return take(
        Delivery.objects.select_related("order", "vendor"), delivery_id, action=action, by=by
    )


def take_run(run_id: int, *, action: str, by: User | None, version: int | None = None) -> BurnInRun:
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


RESULT_OF = {
    VerdictChoice.PASS: ItemResult.PASS,
    VerdictChoice.WARN: ItemResult.REVIEW,
    VerdictChoice.FAIL: ItemResult.FAIL,
}
# Worst first; neither a failure nor a doubt is undone by what is uploaded after it: a person looks at the doubt.
ORDER = (ItemResult.FAIL, ItemResult.REVIEW, ItemResult.PASS, ItemResult.OPEN)


def verdicts_of(run: BurnInRun) -> list[UnitVerdict]:
    """What the files of this delivery, uploaded since the run's clock started, say about its unit.

    A file whose bytes are no longer what was uploaded covers no time and passes nothing; a failure in it stays one.
    """
    rows = list(
        UnitVerdict.objects.filter(
            asset=run.asset_id,
            evidence__delivery=run.delivery_id,
            evidence__state=EvidenceState.READ,
            evidence__created_at__gte=run.clock_from,
        )
        .select_related("evidence__file")
        .order_by("evidence_id")
    )
    for row in rows:
        if row.evidence.altered_at is not None:
            row.covered_seconds = 0
            if row.verdict in (VerdictChoice.PASS, VerdictChoice.WARN):
                row.verdict = VerdictChoice.INCONCLUSIVE
    return rows


class Promised:
    """Promised against measured by delivery, asked for once however many runs are refreshed together."""

    def __init__(self) -> None:
        self._known: dict[int, list[PromiseResult]] = {}

    def of(self, run: BurnInRun) -> list[PromiseResult]:
        if run.delivery_id not in self._known:
            self._known[run.delivery_id] = promised_against_measured(run.delivery)
        return self._known[run.delivery_id]


def refresh_run(run: BurnInRun, promised: Promised | None = None) -> bool:
    """Recompute covered time and the items that evidence decides. Returns whether a blocking item failed.

    Missing is never a pass: an item without a file that speaks of it stays open.
    """
    promised = promised or Promised()
    verdicts = verdicts_of(run)
    covered = max((verdict.covered_seconds for verdict in verdicts), default=0)
    if covered != run.covered_seconds:
        run.covered_seconds = covered
        BurnInRun.objects.filter(pk=run.pk).update(covered_seconds=covered)
    failed = bool(_unasked_failures(run, verdicts))
    for row in run.items.select_related("item"):
        contradicted = row.item.code == IDENTITY_ITEM and _contradiction(verdicts) is not None
        if row.result in (ItemResult.WAIVED, ItemResult.NOT_APPLICABLE) and not contradicted:
            continue
        found = _decide(run, row, verdicts, promised)
        if found is None:
            failed = failed or (
                row.result == ItemResult.FAIL and row.item.weight == Weight.BLOCKING
            )
            continue
        result, value, evidence_id = found
        # A person looked at it; only a failure that evidence shows later outweighs that.
        reviewed = row.decided_by_id is not None and result in (ItemResult.REVIEW, ItemResult.OPEN)
        if row.item.decided_by == DecidedBy.EITHER and row.evidence_id is None:
            reviewed = reviewed and result == ItemResult.OPEN  # no file spoke when the person did
        if not reviewed and (row.result, row.value, row.evidence_id) != (
            result,
            value,
            evidence_id,
        ):
            row.result, row.value, row.evidence_id = result, value[:120], evidence_id
            row.decided_at = timezone.now()
            row.decided_by = None
            if result == ItemResult.NOT_APPLICABLE:
                row.note = _in_own_language(msg("The order holds the vendor to no such figure."))
            row.save(
                update_fields=["result", "value", "evidence", "decided_at", "decided_by", "note"]
            )
        failed = failed or (result == ItemResult.FAIL and row.item.weight == Weight.BLOCKING)
    return failed


def _unasked_failures(run: BurnInRun, verdicts: Sequence[UnitVerdict]) -> list[UnitVerdict]:
    """Files that fail the unit though no deciding item asks for them: a failure that was seen is a failure."""
    asked = {
        name
        for row in run.items.select_related("item")
        if row.item.weight != Weight.INFORMATION
        for name in row.item.formats
    }
    return [
        verdict
        for verdict in verdicts
        if verdict.verdict == VerdictChoice.FAIL and verdict.evidence.format not in asked
    ]


def _decide(
    run: BurnInRun, row: RunItem, verdicts: Sequence[UnitVerdict], promised: Promised
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
    if item.decided_by == DecidedBy.PROMISE:
        return _by_promise(run, promised)
    if item.code == IDENTITY_ITEM and (against := _contradiction(verdicts)) is not None:
        verdict, words = against
        return ItemResult.FAIL, words, verdict.evidence_id
    found = [
        (_item_result(item, verdict), verdict)
        for verdict in verdicts
        if verdict.evidence.format in item.formats
    ]
    if not found and item.decided_by == DecidedBy.EITHER:
        return None  # no file speaks of it: a person does
    for wanted in ORDER:
        for result, verdict in found:
            if result == wanted:
                return result, _words(verdict), verdict.evidence_id
    return ItemResult.OPEN, "", None


def _contradiction(verdicts: Sequence[UnitVerdict]) -> tuple[UnitVerdict, str] | None:
    """The first file, of whatever tool, that names another model than the ordered one; and both names."""
    for verdict in verdicts:
        for reason in verdict.reasons:
            if reason["rule"] == MODEL_DIFFERS:
                return verdict, f"{reason['shown']} ≠ {reason['ordered']}"
    return None


def _item_result(item: ChecklistItem, verdict: UnitVerdict) -> str:
    if item.rules and verdict.verdict == VerdictChoice.FAIL:
        against = {reason["rule"] for reason in verdict.reasons if reason["verdict"] == "fail"}
        # The file fails for another rule: this item is not shown to hold by it, nor to be broken.
        return ItemResult.FAIL if against & set(item.rules) else ItemResult.OPEN
    if item.rules and verdict.verdict == VerdictChoice.WARN:
        # Nothing fails and nothing is missing: what is to be looked at is for the items whose rules it is.
        doubted = {reason["rule"] for reason in verdict.reasons if reason["verdict"] == "warn"}
        return ItemResult.REVIEW if doubted & set(item.rules) else ItemResult.PASS
    return RESULT_OF.get(VerdictChoice(verdict.verdict), ItemResult.OPEN)


def _words(verdict: UnitVerdict) -> str:
    """What the file found, in the language of the organisation: it goes to the vendor and into the certificate."""
    reasons = [reason for reason in verdict.reasons if reason["verdict"] == verdict.verdict]
    words = [_in_own_language(Message.from_json(reason["message"])) for reason in reasons]
    return Truncator(" ".join(dict.fromkeys(words))).chars(120)


def _in_own_language(message: Message) -> str:
    with translation.override(organisation().language):
        return message.render(gettext)


def _by_promise(run: BurnInRun, promised: Promised) -> tuple[str, str, int | None]:
    """What the vendor promised for this unit or its server: missed waits for a person, unmeasured stays open.

    So does what a person typed in: one person's figure is no file's, and passes nothing alone.

    A missed promise is no defect of the unit by itself, so it fails no run; it blocks until a second person lets it go
    (for a credit, say) or somebody fails the unit.
    """
    found = deciding(promised.of(run), run.asset)
    if not found:
        return ItemResult.NOT_APPLICABLE, "", None
    missed = [(result, unit) for result, unit in found if unit.kept is False]
    open_ = [(result, unit) for result, unit in found if unit.measured is None]
    typed = [(result, unit) for result, unit in found if unit.is_typed]
    result, unit = max(
        missed or open_ or typed or found, key=lambda pair: pair[1].share or 0
    )  # the worst is told
    words = unit.words
    value = result.promise.label
    if words is not None:
        value = f"{value}: {_in_own_language(words)}"
    if unit.is_typed:
        value = f"{value} ({_in_own_language(msg('typed in by a person'))})"
    source = unit.source.evidence_id if unit.source is not None else None
    if missed or (typed and not open_):
        state = ItemResult.REVIEW
    else:
        state = ItemResult.OPEN if open_ else ItemResult.PASS
    return state, Truncator(value).chars(120), source


def _by_packing_list(run: BurnInRun) -> tuple[str, str, int | None]:
    announced = AnnouncedSerial.objects.filter(delivery=run.delivery_id)
    if not announced.exists():
        return ItemResult.REVIEW, "", None
    listed = announced.filter(folded_serial=run.asset.folded_serial).exists()
    return (ItemResult.PASS if listed else ItemResult.REVIEW), run.asset.serial, None


def refresh_runs(runs: Iterable[BurnInRun]) -> None:
    """Recompute open runs after evidence came; one that fails is failed by the system, the others go on."""
    promised = Promised()
    for run in runs:
        if refresh_run(run, promised) and run.status in OPEN_RUN:
            fail(run, reason=failure_words(run), by=None)


def failure_words(run: BurnInRun) -> str:
    """Codes and findings of the blocking items that failed, and of files that fail the unit unasked."""
    rows = run.items.filter(result=ItemResult.FAIL, item__weight=Weight.BLOCKING)
    words = [
        " ".join(filter(None, [row.item.code, row.value or row.note]))
        for row in rows.select_related("item")
    ]
    words += [
        f"{verdict.evidence.format}: {_words(verdict)}"
        for verdict in _unasked_failures(run, verdicts_of(run))
    ]
    return "; ".join(words)


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
    if row.result == ItemResult.FAIL and row.value:
        return msg("%(code)s failed: %(value)s", code=code, value=row.value)
    if row.result == ItemResult.FAIL:
        return msg("%(code)s failed", code=code)
    if row.item.decided_by == DecidedBy.PROMISE:
        if row.result == ItemResult.REVIEW:
            return msg("%(code)s waits for a second person: %(value)s", code=code, value=row.value)
        return msg("%(code)s is open: no file shows %(value)s", code=code, value=row.value)
    if row.result == ItemResult.REVIEW:
        return msg("%(code)s waits for a person to look at it", code=code)
    if row.item.decided_by == DecidedBy.EVIDENCE:
        return msg("%(code)s is open: no file proves it yet", code=code)
    return msg("%(code)s is open: nobody noted a result yet", code=code)


def fail(run: BurnInRun, *, reason: str, by: User | None) -> None:
    """Failed: the unit is defective and an RMA is drafted. By None: the system, from evidence."""
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
