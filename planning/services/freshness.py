"""Which studies no longer hold because prices, figures or rates moved. Their results stay as they are."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from core import transitions
from core.organisation import NotSetUp, today
from planning.models.studies import MarketSnapshot, Study
from planning.services.calibration import calibrated_market
from planning.services.snapshots import snapshot
from planning.states import RequestStatus, StudyStatus
from planning.study.search.compare import market_changes, outdates

HOLDS = (StudyStatus.READY, StudyStatus.PUBLISHED)
UNDECIDED = (
    RequestStatus.DRAFT, RequestStatus.SUBMITTED, RequestStatus.IN_REVIEW, RequestStatus.CHANGES_REQUESTED,
)  # fmt: skip


def outdate_studies() -> int:
    """Mark the studies of undecided requests whose market moved since. Returns how many. Safe to repeat."""
    try:
        day = today()
    except NotSetUp:
        return 0
    held = MarketSnapshot.objects.filter(
        studies__status__in=HOLDS, studies__revision__request__status__in=UNDECIDED
    ).distinct()
    if not held.exists():
        return 0
    market_now = snapshot(day)
    now: dict[str, dict[str, Any]] = {}  # by class of work: calibration moves figures too
    marked = 0
    for market in held:
        rows = market.studies.filter(
            status__in=HOLDS, revision__request__status__in=UNDECIDED
        ).values_list("pk", "inputs")
        for pk, inputs in rows:
            kind = inputs["request"]["kind"]
            if kind not in now:
                now[kind] = calibrated_market(market_now, kind)[0].to_json()
            changes = market_changes(market.content, now[kind], _asked(inputs))
            marked += outdates(changes, inputs["currency"]) and _outdate(pk, changes)
    return marked


def _asked(inputs: dict[str, Any]) -> tuple[str, ...]:
    """The accelerators that the study compared; none: all."""
    return tuple(inputs["request"].get("accelerator", ()))


@transaction.atomic
def _outdate(pk: int, changes: dict[str, Any]) -> bool:
    study = transitions.lock(Study.objects.select_related("revision__request__team"), pk)
    if study.status not in HOLDS:
        return False
    facts: dict[str, Any] = {
        name: count for name, count in changes.items() if isinstance(count, int)
    }
    transitions.advance(study, StudyStatus.STALE, by=None, action="study.outdated",
                        team=study.revision.request.team, cause="market", **facts,
                        rates=len(changes["rates"]))  # fmt: skip
    return True


def moved_since(study: Study) -> dict[str, Any] | None:
    """What moved on the market since the study; None where nothing did that would change its answer."""
    if study.snapshot is None:
        return None
    here, _learned = calibrated_market(snapshot(today()), study.inputs["request"]["kind"])
    changes = market_changes(study.snapshot.content, here.to_json(), _asked(study.inputs))
    return changes if outdates(changes, study.inputs["currency"]) else None
