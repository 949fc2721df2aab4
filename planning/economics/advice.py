"""Advice by the stage of the asker, and the five rules: text from rules, with the asker's numbers in it.

The arithmetic is the same for all; what changes with the stage is which lever matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.messages import Message, msg
from core.money import Money
from planning.economics import checks, defaults


class Stage(StrEnum):
    """Who asks."""

    STUDENT = "student"
    START_UP = "start_up"
    MID_SIZE = "mid_size"
    LARGE = "large"


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of the asker. None: not known, and the rule that needs it keeps silent."""

    stage: Stage
    owned_cards: int = 0
    utilisation: float | None = None  # of the owned cards
    cards_needed: int | None = None
    planned_utilisation: float | None = None
    demand_swing: float | None = None  # largest expected change of demand within a year, share
    yearly_budget: Money | None = None
    may_leave: bool = True
    spot_saving: float | None = None  # computed, share of on demand
    funnel_saving: float | None = None  # computed, against the better pure mode
    break_even_utilisation: float | None = None  # computed; None: not known or never
    pooling_saving: float | None = None  # computed, share of the sum of peaks
    need_hours: float | None = None  # how long the need itself runs
    lasting: bool = True  # the need fills enough of a purchase's life that owning is a question

    def __post_init__(self) -> None:
        for field in (
            "utilisation",
            "planned_utilisation",
            "break_even_utilisation",
            "pooling_saving",
        ):
            known = getattr(self, field)
            if known is not None:
                checks.fraction(field, known)
        for field in ("owned_cards", "cards_needed", "demand_swing"):
            known = getattr(self, field)
            if known is not None:
                checks.non_negative(field, known)


def advise(situation: Situation) -> tuple[Message, ...]:
    """Advice for `situation`, most important first."""
    by_stage = {
        Stage.STUDENT: _student,
        Stage.START_UP: _start_up,
        Stage.MID_SIZE: _mid_size,
        Stage.LARGE: _large,
    }
    return (*_compliance(situation), *_idle(situation), *by_stage[situation.stage](situation))


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the five rules look at. None: not known."""

    training: bool
    sized_by_model: bool | None = None
    latency_checked: bool | None = None  # inference: the bound is met by the estimate
    quantised: bool | None = None
    batched: bool | None = None
    accuracy_loss_allowed: bool = True
    spot: bool = False
    checkpointable: bool = False
    benchmarked: bool | None = None
    headroom: float | None = None


def five_rules(facts: PlanFacts) -> tuple[Message, ...]:
    """The rules that a plan breaks, with what to do; empty when it keeps all five."""
    broken = []
    if facts.training and facts.sized_by_model is False:
        broken.append(
            msg("Training is sized by the model: enter its parameters, precision and context first")
        )
    if not facts.training and facts.latency_checked is False:
        broken.append(msg("Inference is sized by latency: check the bound before counting cards"))
    if not facts.training and facts.accuracy_loss_allowed and facts.quantised is False:
        broken.append(
            msg("Quantise: the accuracy limit allows it and it answers 2 to 4 times as fast")
        )
    if not facts.training and facts.batched is False:
        broken.append(
            msg(
                "Batch requests: utilisation rises from about %(low)s %% to %(high)s %%",
                low=20,
                high=80,
            )
        )
    if facts.training and facts.checkpointable and not facts.spot:
        broken.append(msg("This training has checkpoints: spot about halves its cost"))
    if facts.spot and not facts.checkpointable:
        broken.append(msg("Spot without checkpoints is a bomb: each reclaim throws all work away"))
    if facts.benchmarked is False:
        broken.append(msg("Benchmark your own workload before you choose"))
    wanted = defaults.value("headroom")
    if facts.headroom is not None and facts.headroom < wanted:
        broken.append(
            msg(
                "Headroom is %(have)s %%; keep %(want)s %% and never plan for 100 %%",
                have=round(facts.headroom * 100),
                want=round(wanted * 100),
            )
        )
    return tuple(broken)


def _compliance(situation: Situation) -> list[Message]:
    if situation.may_leave:
        return []
    return [msg("Data may not leave the organisation: public cloud is out, whatever it costs")]


def _idle(situation: Situation) -> list[Message]:
    limit = defaults.value("advice.idle_utilisation")
    if not situation.owned_cards or situation.utilisation is None or situation.utilisation >= limit:
        return []
    return [
        msg(
            "%(cards)s owned cards are busy %(use)s %% of the time: use them before you buy, below %(limit)s %% "
            "they are over-sized",
            cards=situation.owned_cards,
            use=round(situation.utilisation * 100),
            limit=round(limit * 100),
        )
    ]


def _student(situation: Situation) -> list[Message]:
    usual = defaults.known("advice.student_cny_per_year")
    advice = [
        msg(
            "Free tiers and one consumer card carry a student: %(low)s to %(high)s CNY a year",
            low=round(usual.low),
            high=round(usual.high),
        )
    ]
    budget = situation.yearly_budget
    if budget is not None and budget.currency == "CNY" and float(budget.amount) < usual.low:
        advice.append(
            msg("Your budget of %(budget)s is below that: stay on free tiers", budget=str(budget))
        )
    return advice


def _start_up(situation: Situation) -> list[Message]:
    advice = [
        msg(
            "Train on spot with checkpoints, serve from a small on-demand pool that scales by itself"
        )
    ]
    if situation.spot_saving is not None:
        advice.append(
            msg(
                "Spot saves %(saving)s %% on your training",
                saving=round(situation.spot_saving * 100),
            )
        )
    planned = situation.planned_utilisation
    if planned is not None and planned < defaults.value("advice.idle_utilisation"):
        advice.append(
            msg(
                "Do not buy: at %(use)s %% use two idle servers of 8 cards are the classic death of a start-up",
                use=round(planned * 100),
            )
        )
    return advice


def _mid_size(situation: Situation) -> list[Message]:
    advice = list(_own_or_rent(situation))
    if situation.funnel_saving is not None:
        advice.append(
            msg(
                "A reserved base, on-demand peaks and spot save %(saving)s %% against the better pure mode",
                saving=round(situation.funnel_saving * 100),
            )
        )
    return advice


def _large(situation: Situation) -> list[Message]:
    advice = [
        msg(
            "Run several pools as one: core services on owned or long-reserved cards, elastic work on spot"
        )
    ]
    if situation.pooling_saving is not None:
        advice.append(
            msg(
                "Pooling all teams saves %(saving)s %% of the cards",
                saving=round(situation.pooling_saving * 100),
            )
        )
    busy = defaults.value("advice.own_min_utilisation")
    if situation.utilisation is not None and situation.utilisation < busy:
        advice.append(
            msg(
                "Keep cards busy before you buy more: they are used %(use)s %%, buy from %(busy)s %%",
                use=round(situation.utilisation * 100),
                busy=round(busy * 100),
            )
        )
    return [*advice, *_own_or_rent(situation)]


def _own_or_rent(situation: Situation) -> list[Message]:
    """Own from about a hundred cards at a steady 70 %; the computed break-even goes before the rule of thumb."""
    planned, cards, swing = (
        situation.planned_utilisation,
        situation.cards_needed,
        situation.demand_swing,
    )
    if planned is None:
        return []
    if not situation.lasting:
        return [_passing(situation)]
    known = situation.break_even_utilisation
    least = defaults.value("advice.own_min_utilisation") if known is None else known
    advice = []
    if swing is not None and swing > defaults.value("advice.max_swing"):
        return [
            msg(
                "Demand may change by %(swing)s %% within a year: renting is the safe side until it is steady",
                swing=round(swing * 100),
            )
        ]
    few = defaults.value("advice.own_min_cards")
    if known is None and cards is not None and cards < few:
        advice.append(
            msg(
                "Rent: %(cards)s cards are fewer than the %(few)s or so from which owning pays",
                cards=cards,
                few=round(few),
            )
        )
    elif planned >= least:
        advice.append(
            msg(
                "Own: %(use)s %% planned use is at or above the break-even of %(least)s %%",
                use=round(planned * 100),
                least=round(least * 100),
            )
        )
    else:
        advice.append(
            msg(
                "Rent: %(use)s %% planned use is below the break-even of %(least)s %%",
                use=round(planned * 100),
                least=round(least * 100),
            )
        )
    return advice


def _passing(situation: Situation) -> Message:
    """What is told of a need that is over before a purchase is worn in."""
    least = round(100 * defaults.value("advice.own_min_need"))
    if situation.need_hours is None:
        return msg(
            "Rent: this need alone fills less than %(least)s %% of the life of what would be bought",
            least=least,
        )
    return msg(
        "Rent: this need runs %(hours)s hours and fills less than %(least)s %% of the life of what would be bought",
        hours=round(situation.need_hours, 1)
        if situation.need_hours < 100
        else round(situation.need_hours),
        least=least,
    )
