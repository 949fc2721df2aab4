"""Ways to run a request, before anyone is paid: one entry per accelerator, count, precision and layout that stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.messages import Message

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Progress = Callable[[int, Message], None]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Something that lost, why, and the smallest change that would let it in (None: none would)."""

    subject: str  # accelerator, offer, purchase, stock, payment
    accelerator: str  # slug; empty: none in particular
    reason: Message
    change: Message | None
    code: str  # for filters: memory, time, price, region, ...
    provider: str = ""
    region: str = ""
    instance: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """Columns of shape (n,). A way is physical: what runs where, how long, how exactly."""

    accelerator: Ints  # index into the snapshot's accelerators
    cards: Ints
    linked: Ints  # of them that must be in one server
    work_hours: Floats  # of one run, undisturbed
    hours: Floats  # that capacity is held: all runs with their interruptions, or the service's duration
    span_hours: Floats  # from the first hour to the last
    starts: Ints
    seconds: Floats  # what is minimised beside cost: time of a run, or latency [s]
    time_low: Floats  # P10 and P90 of `seconds` over `seconds` [1]
    time_high: Floats
    accuracy_loss: Floats  # share
    memory_bytes: Floats  # per accelerator
    checkpoint_hours: Floats  # nan: cannot be interrupted
    precision: tuple[str, ...]
    layout: tuple[Mapping[str, int | str], ...]
    within: Mask  # in time, or under the latency target
    limit: Floats  # what `seconds` is held against; inf: nothing [s]
    spared: Mask  # another way with fewer requests in flight, so that the P90 holds the limit

    def __len__(self) -> int:
        return int(self.cards.size)


@dataclass(slots=True)
class Found:
    """What a search over physics found."""

    ways: Ways
    evaluated: int  # candidates whose memory and speed were computed
    refused: list[Exclusion] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)
    constants_version: str = ""


def columns(rows: Sequence[Mapping[str, Any]]) -> Ways:
    """Rows as columns; the names are those of :class:`Ways`."""

    def floats(name: str) -> Floats:
        return np.array([row[name] for row in rows], dtype=np.float64)

    def ints(name: str) -> Ints:
        return np.array([row[name] for row in rows], dtype=np.int64)

    return Ways(
        accelerator=ints("accelerator"),
        cards=ints("cards"),
        linked=ints("linked"),
        work_hours=floats("work_hours"),
        hours=floats("hours"),
        span_hours=floats("span_hours"),
        starts=ints("starts"),
        seconds=floats("seconds"),
        time_low=floats("time_low"),
        time_high=floats("time_high"),
        accuracy_loss=floats("accuracy_loss"),
        memory_bytes=floats("memory_bytes"),
        checkpoint_hours=floats("checkpoint_hours"),
        precision=tuple(str(row["precision"]) for row in rows),
        layout=tuple(row["layout"] for row in rows),
        within=np.array([row["within"] for row in rows], dtype=bool),
        limit=floats("limit"),
        spared=np.array([row.get("spared", False) for row in rows], dtype=bool),
    )
