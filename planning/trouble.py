"""The trouble finder: symptoms, questions, likely causes ranked, what to look at first and what to do then. Pure.

A cause starts with a weight of its own; answers and what telemetry shows move it. The order is advice, not proof: each
cause names the check that settles it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.messages import Message, msg

LOW_USE = 0.30  # share; below it cards are too many or held up
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Signs:
    """What a team's own telemetry shows; None: nobody told."""

    utilization: float | None = None
    sm: float | None = None
    memory: float | None = None
    queue: float | None = None  # [s]
    interrupted: int = 0
    idle: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """Answered yes or no; unanswered moves nothing."""

    key: str
    text: Message


@dataclass(frozen=True, slots=True)
class Check:
    """How to find out, and the command that shows it."""

    text: Message
    command: str = ""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do, and what it does to cost. `start`: a request or an RMA begins here."""

    text: Message
    cost: Message
    start: str = ""  # "request" or "rma"


@dataclass(frozen=True, slots=True)
class Cause:
    key: str
    title: Message
    weight: float
    checks: tuple[Check, ...]
    remedies: tuple[Remedy, ...]
    yes: Mapping[str, float]  # question → what a yes adds; a no takes as much away
    sign: Callable[[Signs], float] | None = None  # what telemetry adds; 0: says nothing
    shown: Message | None = None  # why telemetry speaks for it


@dataclass(frozen=True, slots=True)
class Symptom:
    key: str
    title: Message
    questions: tuple[Question, ...]
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A cause with its score and whether telemetry speaks for it."""

    cause: Cause
    score: float
    by_telemetry: bool


def ranked(symptom: Symptom, answers: Mapping[str, bool], signs: Signs) -> tuple[Ranked, ...]:
    """Causes, likeliest first; ties keep the order of the table."""
    found = []
    for cause in symptom.causes:
        score = cause.weight
        for key, weight in cause.yes.items():
            if key in answers:
                score += weight if answers[key] else -weight
        told = cause.sign(signs) if cause.sign is not None else 0.0
        found.append(Ranked(cause, score + told, told > 0))
    return tuple(sorted(found, key=lambda one: -one.score))


def free(text: Message) -> Remedy:
    return Remedy(text, msg("costs nothing but the change"))


def when(condition: Callable[[Signs], bool], weight: float = 2.0) -> Callable[[Signs], float]:
    return lambda signs: weight if condition(signs) else 0.0


def below(value: float | None, limit: float) -> bool:
    return value is not None and value < limit


def above(value: float | None, limit: float) -> bool:
    return value is not None and value > limit


DMON = "nvidia-smi dmon -s pucm -d 5"
MEMORY = "nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv -l 1"
