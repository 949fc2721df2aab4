"""Capacity held over a term, from the plans of what is sourced: how much, whose, until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from planning.models.plans import PaymentChoice, PlanChoice
from planning.models.requests import CapacityRequest
from planning.selectors.spread import TERM_MONTHS, term_of
from planning.states import RequestStatus


@dataclass(frozen=True, slots=True)
class Reserved:
    """One reservation, subscription or lease."""

    request: str
    team: str
    team_slug: str
    accelerator: str
    cards: int
    mode: str
    first_day: date
    last_day: date | None  # still held; None: no length was told


def reserved() -> list[Reserved]:
    """All of them, those that end first on top and those without an end last; a mix has no end of its own."""
    requests = CapacityRequest.objects.filter(status=RequestStatus.FULFILLED).with_current()
    found = []
    for request in requests:
        plan: PlanChoice | None = getattr(request.current, "plan", None)
        if plan is None or not (plan.mode in TERM_MONTHS or plan.mode == PaymentChoice.MIXED):
            continue
        term = term_of(plan)
        start = plan.revision.start or plan.revision.need_by
        found.append(
            Reserved(
                request.reference, request.team.name, request.team.slug, plan.accelerator_slug, plan.cards, plan.mode,
                term[0] if term else start, term[1] if term else None,
            )
        )  # fmt: skip
    return sorted(found, key=lambda r: (r.last_day is None, r.last_day or date.min, r.request))
