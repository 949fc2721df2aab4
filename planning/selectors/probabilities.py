"""How likely what is asked for is approved, from what became of earlier requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from core.models import AuditEntry
from planning.models.probabilities import DEFAULTS, STAGES, StagePrior
from planning.models.requests import CapacityRequest
from planning.states import RequestStatus

LOOK_BACK = timedelta(days=730)
AGREED = (RequestStatus.APPROVED, RequestStatus.SOURCING, RequestStatus.FULFILLED)
DECIDED = (*AGREED, RequestStatus.REJECTED, RequestStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class Probability:
    """Of one stage: `agreed` of `reached` decided requests were approved, drawn to `prior` as if that were `weight`
    more of them."""

    stage: str
    prior: float
    weight: int
    reached: int
    agreed: int
    version: int = 0  # of the assumption; 0: never changed

    @property
    def value(self) -> float:
        """[1]"""
        return (self.agreed + self.weight * self.prior) / (self.reached + self.weight)

    @property
    def observed(self) -> float | None:
        """Share without the assumption; None before anything was decided. [1]"""
        return self.agreed / self.reached if self.reached else None

    @property
    def label(self) -> str:
        return str(RequestStatus(self.stage).label)


def probabilities() -> dict[str, Probability]:
    """By stage. A request counts once for each stage that it was ever in, when it is decided; approved is approved,
    also when it was withdrawn later. Three queries."""
    priors = {
        row.stage: (float(row.share), row.weight, row.version) for row in StagePrior.objects.all()
    }
    entered: dict[str, set[str]] = defaultdict(set)
    moves = AuditEntry.objects.filter(
        object_type=CapacityRequest._meta.label_lower,
        to_state__in=[*STAGES, RequestStatus.APPROVED],
        at__gte=timezone.now() - LOOK_BACK,
    )
    for request, state in moves.order_by().values_list("object_id", "to_state").distinct():
        entered[state].add(request)
    decided = {
        str(pk)
        for pk in CapacityRequest.objects.filter(status__in=DECIDED).values_list("pk", flat=True)
    }
    agreed = entered[RequestStatus.APPROVED]
    found = {}
    for stage in STAGES:
        default, points = DEFAULTS[stage]
        prior, weight, version = priors.get(stage, (float(default), points, 0))
        reached = entered[stage] & decided
        found[stage.value] = Probability(
            stage.value, prior, weight, len(reached), len(reached & agreed), version
        )
    return found


def values() -> Mapping[str, float]:
    """The probability alone, by stage. [1]"""
    return {stage: found.value for stage, found in probabilities().items()}
