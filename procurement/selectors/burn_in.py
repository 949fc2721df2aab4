"""A delivery's burn-in at a glance: every unit with its run, its verdict, and how it compares with the batch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch

from core.messages import Message, msg
from procurement.evidence.types import Verdict
from procurement.evidence.verdict import worst
from procurement.figures import figure_words
from procurement.models import Asset, BurnInRun, Delivery, Rma, RunItem, UnitVerdict
from procurement.models.burn_in import DecidedBy, ItemResult, Weight
from procurement.models.evidence import EvidenceState, VerdictChoice
from procurement.outliers import outliers
from procurement.states import OPEN_RMA, AssetStatus, BurnInStatus

OPEN_RUN = (BurnInStatus.RUNNING, BurnInStatus.INTERRUPTED)
NOT_COMPARED = frozenset({"index"})  # figures that name rather than measure


@dataclass(frozen=True, slots=True)
class UnitRow:
    """One unit. `run` is its latest; `attempts` counts all of them."""

    asset: Asset
    run: BurnInRun | None
    attempts: int
    blocking: tuple[str, ...]  # codes of blocking items that are not settled
    review: tuple[str, ...]  # codes of review items that are not settled
    verdict: (
        VerdictChoice | None
    )  # worst of what files say since the clock started; None: no file speaks of it
    outliers: tuple[Message, ...]
    rma: Rma | None

    @property
    def waits(self) -> bool:
        """Whether a run may start."""
        return self.asset.status in (AssetStatus.RECEIVED, AssetStatus.INSTALLED) and not (
            self.run is not None and self.run.status in OPEN_RUN
        )

    @property
    def is_open(self) -> bool:
        return self.run is not None and self.run.status in OPEN_RUN


@dataclass(frozen=True, slots=True)
class Board:
    """All units of a delivery, and how many are where."""

    rows: tuple[UnitRow, ...]
    earlier: tuple[BurnInRun, ...]  # runs that a later attempt followed

    @property
    def counts(self) -> Counter[str]:
        """Units by state of their latest run; `waiting` where none is open and one may start."""
        found: Counter[str] = Counter()
        for row in self.rows:
            if row.waits:
                found["waiting"] += 1
            elif row.run is not None:
                found[str(row.run.status)] += 1
        return found

    @property
    def ready(self) -> int:
        """Running units with nothing open: they may pass."""
        return sum(
            row.run is not None
            and row.run.status == BurnInStatus.RUNNING
            and not row.blocking
            and not row.review
            for row in self.rows
        )


def burn_in_board(delivery: Delivery) -> Board:
    """The board, in a number of queries that does not grow with the units."""
    assets = list(
        Asset.objects.filter(receipt_line__delivery=delivery)
        .exclude(status=AssetStatus.VOIDED)
        .select_related("parent", "request", "replaces")
        .order_by("kind", "serial")
    )
    runs = list(
        BurnInRun.objects.filter(delivery=delivery)
        .select_related("operator", "template", "asset")
        .prefetch_related(Prefetch("items", RunItem.objects.select_related("item")))
        .order_by("asset_id", "-attempt")
    )
    latest: dict[int, BurnInRun] = {}
    attempts: Counter[int] = Counter()
    for run in runs:
        latest.setdefault(run.asset_id, run)
        attempts[run.asset_id] += 1
    verdicts = list(
        UnitVerdict.objects.filter(evidence__delivery=delivery, evidence__state=EvidenceState.READ)
        .select_related("evidence")
        .defer("evidence__result", "reasons")
        .order_by("evidence_id")
    )
    counted = [
        verdict
        for verdict in verdicts
        if verdict.asset_id not in latest
        or verdict.evidence.created_at >= latest[verdict.asset_id].clock_from
    ]
    by_asset: dict[int, list[Verdict]] = defaultdict(list)
    for verdict in counted:
        if verdict.verdict != VerdictChoice.NOT_APPLICABLE:
            by_asset[verdict.asset_id].append(Verdict(verdict.verdict))
    strange = _strange(counted)
    claims: dict[int, Rma] = {}
    for rma in Rma.objects.filter(asset__in=[asset.pk for asset in assets]).order_by("pk"):
        if rma.status in OPEN_RMA or rma.asset_id not in claims:
            claims[rma.asset_id] = rma
    rows = []
    for asset in assets:
        newest = latest.get(asset.pk)
        rows.append(
            UnitRow(
                asset=asset,
                run=newest,
                attempts=attempts[asset.pk],
                blocking=_open(newest, Weight.BLOCKING),
                review=_open(newest, Weight.REVIEW),
                verdict=VerdictChoice(worst(by_asset[asset.pk])) if by_asset[asset.pk] else None,
                outliers=tuple(strange[asset.pk]),
                rma=claims.get(asset.pk),
            )
        )
    earlier = tuple(run for run in runs if latest[run.asset_id].pk != run.pk)
    return Board(tuple(rows), earlier)


def _open(run: BurnInRun | None, weight: str) -> tuple[str, ...]:
    if run is None or run.status not in OPEN_RUN:
        return ()
    return tuple(
        row.item.code for row in run.items.all() if not row.is_settled and _stands_as(row) == weight
    )


def _stands_as(row: RunItem) -> str:
    """A failed item for review blocks as a blocking one does: nobody may look it away."""
    if row.item.weight == Weight.REVIEW and row.result == ItemResult.FAIL:
        return Weight.BLOCKING
    return row.item.weight


def _strange(verdicts: Iterable[UnitVerdict]) -> dict[int, list[Message]]:
    """What differs from the batch, by asset: each figure among the units of one format, newest file first."""
    figures: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for verdict in verdicts:
        for name, value in verdict.figures.items():
            if (
                name in NOT_COMPARED
                or isinstance(value, bool)
                or not isinstance(value, int | float)
            ):
                continue
            figures[verdict.evidence.format, name][verdict.asset_id] = float(value)
    found: dict[int, list[Message]] = defaultdict(list)
    for (_format, name), values in sorted(figures.items()):
        for asset_id, outlier in outliers(values).items():
            found[asset_id].append(
                msg(
                    "%(figure)s %(value)s, batch %(median)s (%(share)s %%)",
                    figure=figure_words(name),
                    value=f"{outlier.value:g}"
                    if abs(outlier.value) < 1e6
                    else f"{outlier.value:.0f}",
                    median=f"{outlier.median:.6g}",
                    share=f"{outlier.share * 100:+.1f}",
                )
            )
    return found


def manual_items(rows: Sequence[UnitRow]) -> list[RunItem]:
    """One row per item that people decide and that is open on some unit, in order of the checklist."""
    found: dict[str, RunItem] = {}
    for row in rows:
        if not row.is_open or row.run is None:
            continue
        for item in row.run.items.all():
            decided_by = item.item.decided_by
            by_person = (
                decided_by == DecidedBy.PERSON
                or (decided_by == DecidedBy.EITHER and item.evidence_id is None)
                or (item.item.weight == Weight.REVIEW and item.result == ItemResult.OPEN)
                or (item.result == ItemResult.REVIEW and decided_by != DecidedBy.PROMISE)
            )
            if by_person and not item.is_settled:
                found.setdefault(item.item.code, item)
    return [found[code] for code in sorted(found, key=_code_key)]


def _code_key(code: str) -> tuple[Any, ...]:
    """A2.2 before A2.11."""
    return tuple(int(part) if part.isdecimal() else part for part in code.lstrip("AB").split("."))
