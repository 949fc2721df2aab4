"""What other open requests of the organisation ask of an accelerator: known demand that may carry a purchase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from core.messages import Message, msg

# From how many other teams on their sums are told: of fewer, a sum would tell what one of them asks for.
LEAST_TEAMS = 3


@dataclass(frozen=True, slots=True)
class OthersDemand:
    """All open requests but the one that is studied, for one accelerator, over the year ahead."""

    requests: int
    alone: int  # cards, each team for itself: the sum of peaks
    together: int  # cards at the same time: the peak of sums
    idle: int  # owned and free cards, which carry of it what they can before anything is bought
    card_hours: float  # that are left for new servers
    teams: int = (
        0  # behind it, beside the team of the request; studies of before did not count them
    )

    @property
    def told(self) -> bool:
        """Whether its figures may be shown to the team that studies."""
        return self.teams >= LEAST_TEAMS


def pooled_json(pooled: Mapping[str, OthersDemand]) -> dict[str, Any]:
    """By accelerator, as a study pins it."""
    return {slug: list(astuple(one)) for slug, one in sorted(pooled.items())}


def pooled_from_json(data: Mapping[str, Any]) -> dict[str, OthersDemand]:
    """What :func:`pooled_json` wrote."""
    return {slug: OthersDemand(*row) for slug, row in data.items()}


def share_of_rest(pooled: OthersDemand | None, cards: int, rest_hours: float) -> float:
    """How much of the time that a need leaves on `cards` the pooled requests would fill. Share

    Of more cards than there are only the part that fits is carried.
    """
    if pooled is None or rest_hours <= 0:
        return 0.0
    carried = pooled.card_hours * min(1.0, cards / max(pooled.together, 1))
    return min(carried / rest_hours, 1.0)


def pooled_note(pooled: OthersDemand, share: float) -> Message:
    """What stands behind the share; without any figure where too few other teams stand behind it."""
    if not pooled.told:
        return msg(
            "Open requests of others want this accelerator too and count as its use, after idle owned cards; how much "
            "is told when at least %(least)s other teams ask",
            least=LEAST_TEAMS,
        )
    return msg(
        "Open requests of other teams want this accelerator too (%(n)s): %(together)s cards together at the peak, "
        "%(alone)s each for itself. Idle owned cards go first (%(idle)s free); the rest would fill %(share)s %% of "
        "the time left here",
        n=pooled.requests, together=pooled.together, alone=pooled.alone, idle=pooled.idle, share=round(100 * share, 1),
    )  # fmt: skip
