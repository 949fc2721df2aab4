"""Hybrid placement: many workloads over pools with a capacity for each month, by a mixed-integer programme (HiGHS).

An online service stays whole in one pool from month to month; elastic and burst work may be split. A workload may
only go where its rules allow: data that may not leave keeps out of public clouds whatever these cost, spot takes only
work that can be stopped, a latency bound and a list of accelerators are kept. What cannot be placed is reported with
the constraint that stands in the way, and each full pool with what more room in it would save.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy import optimize, sparse

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money
from planning.economics import checks, exact
from planning.economics.checks import Floats
from planning.economics.spot import refusal
from planning.economics.types import (
    HOURS_PER_MONTH,
    PUBLIC_CLOUD_MODES,
    CostLine,
    CostSheet,
    PaymentMode,
    sheet,
)

_UNPLACED_FACTOR = 100.0  # an unplaced card costs this many times the dearest placed one
_TOLERANCE = 1e-6


class Kind(StrEnum):
    """What a workload is."""

    CORE = "core"  # online service
    ELASTIC = "elastic"  # training, data jobs
    BURST = "burst"


@dataclass(frozen=True, slots=True)
class Workload:
    """Cards wanted in each month, and the rules that bind the workload."""

    name: str
    kind: Kind
    cards: tuple[float, ...]  # per month
    hours_per_month: float = HOURS_PER_MONTH  # that each card is in use
    may_leave: bool = True  # data may leave the organisation
    checkpointable: bool = False
    latency_limit: float | None = None  # [s]
    accelerators: frozenset[str] = frozenset()  # slugs that will do; empty: all
    country: str = ""  # that its data may not leave; empty: any

    def __post_init__(self) -> None:
        checks.series(f"workloads.{self.name}.cards", self.cards)
        if not 0 < self.hours_per_month <= 744:
            raise checks.refuse(
                f"workloads.{self.name}.hours_per_month", self.hours_per_month, "0 < h <= 744"
            )

    @property
    def whole(self) -> bool:
        """True if it must stay in one pool."""
        return self.kind is Kind.CORE


@dataclass(frozen=True, slots=True)
class Pool:
    """Capacity of one kind: what it costs by the used card-hour and by the month, and how much there is."""

    name: str
    mode: PaymentMode
    accelerator: str
    per_card_hour: Money  # paid when used; for owned cards: power
    capacity: tuple[float, ...]  # cards per month
    fixed_per_month: Money | None = None  # paid in a month in which the pool is used
    latency: float = 0.0  # [s] added by the way there
    stretch: float = 1.0  # spot: expected time over work
    committed: Money | None = None  # of one card for all the months, used or not: a reserved term
    country: str = ""  # where it stands; empty: not known

    def __post_init__(self) -> None:
        checks.price(f"pools.{self.name}.per_card_hour", self.per_card_hour)
        checks.series(f"pools.{self.name}.capacity", self.capacity)
        if self.fixed_per_month is not None:
            checks.price(f"pools.{self.name}.fixed_per_month", self.fixed_per_month)
            checks.same_currency(f"pools.{self.name}", self.per_card_hour, self.fixed_per_month)
        if self.committed is not None:
            checks.price(f"pools.{self.name}.committed", self.committed)
            checks.same_currency(f"pools.{self.name}", self.per_card_hour, self.committed)
        if not self.stretch >= 1:
            raise checks.refuse(f"pools.{self.name}.stretch", self.stretch, ">= 1")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Cards of one workload in one pool, by month; spot cards are as many as its stretch asks for."""

    workload: str
    pool: str
    cards: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A pool that a workload may not use, and why."""

    workload: str
    pool: str
    reason: Message


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Cards of a workload that no allowed pool could carry, and what stands in the way."""

    workload: str
    cards: tuple[float, ...]  # per month
    reason: Message


@dataclass(frozen=True, slots=True)
class Binding:
    """A full pool: in which months (0 first), and what `extra_cards` more each month would save over the horizon."""

    pool: str
    months: tuple[int, ...]
    extra_cards: float
    saving: Money
    message: Message


@dataclass(frozen=True, slots=True)
class Placement:
    """The cheapest placement."""

    assignments: tuple[Assignment, ...]
    sheet: CostSheet  # one line per workload and pool, and one per pool with a fixed price
    exclusions: tuple[Exclusion, ...]
    shortfalls: tuple[Shortfall, ...]
    binding: tuple[Binding, ...]  # the most valuable first

    @property
    def complete(self) -> bool:
        """True when every workload found its place."""
        return not self.shortfalls


def exclusion(workload: Workload, pool: Pool) -> Message | None:
    """Why `workload` may not go to `pool`; None if it may."""
    if not workload.may_leave and pool.mode in PUBLIC_CLOUD_MODES:
        return msg(
            "Its data may not leave the organisation: public cloud is out, whatever it costs"
        )
    if workload.country and pool.country != workload.country:
        return msg(
            "Its data may not leave %(country)s; this pool stands in %(where)s",
            country=workload.country, where=pool.country or "–",
        )  # fmt: skip
    if workload.accelerators and pool.accelerator not in workload.accelerators:
        return msg("It does not run on %(accelerator)s", accelerator=pool.accelerator)
    if workload.latency_limit is not None and pool.latency > workload.latency_limit:
        return msg(
            "The way there takes %(latency)s ms of the %(limit)s ms allowed",
            latency=round(pool.latency * 1000, 1),
            limit=round(workload.latency_limit * 1000, 1),
        )
    if pool.mode is PaymentMode.SPOT:
        return refusal(checkpointable=workload.checkpointable, online=workload.kind is Kind.CORE)
    return None


def place(
    workloads: Sequence[Workload],
    pools: Sequence[Pool],
    *,
    extra_cards: float = 8.0,
    max_seconds: float = 30.0,
) -> Placement:
    """The cheapest placement of all workloads; also where it is short, and which pools bind.

    Raises
    ------
    InputError
        On no workload or pool, two of one name, series of different lengths, two currencies, or if the programme is
        not solved within `max_seconds`.
    """
    currency = _check(workloads, pools)
    checks.positive("extra_cards", extra_cards)
    solution = _solve(workloads, pools, max_seconds)
    assignments, lines = _read(workloads, pools, solution)
    excluded = tuple(
        Exclusion(workload.name, pool.name, reason)
        for workload in workloads
        for pool in pools
        if (reason := exclusion(workload, pool)) is not None
    )
    return Placement(
        assignments=assignments,
        sheet=sheet(lines, currency),
        exclusions=excluded,
        shortfalls=_shortfalls(workloads, pools, solution),
        binding=_binding(workloads, pools, solution, extra_cards, max_seconds),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Solution:
    cards: Floats  # work placed, shape (workloads, pools, months)
    opened: Floats  # 0 or 1, shape (pools, months)
    unplaced: Floats  # shape (workloads, months)
    objective: float


def _solve(workloads: Sequence[Workload], pools: Sequence[Pool], max_seconds: float) -> _Solution:
    """Variables: work placed x[w, p, m], home of a whole workload y[w, p], pool opened z[p, m], unplaced u[w, m], cards
    committed for all the months c[p]."""
    w, p, m = len(workloads), len(pools), len(workloads[0].cards)
    wanted = np.array([work.cards for work in workloads])
    capacity = np.array([pool.capacity for pool in pools])
    stretch = np.array([pool.stretch for pool in pools])
    rate = np.array([float(pool.per_card_hour.amount) for pool in pools]) * stretch
    hours = np.array([work.hours_per_month for work in workloads])
    allowed = np.array([[exclusion(work, pool) is None for pool in pools] for work in workloads])
    fixed = np.array(
        [0.0 if o.fixed_per_month is None else float(o.fixed_per_month.amount) for o in pools]
    )
    price = hours[:, None] * rate[None, :]
    committed = np.array([0.0 if o.committed is None else float(o.committed.amount) for o in pools])
    dearest = float(price.max() + fixed.max() + committed.max())
    penalty = _UNPLACED_FACTOR * max(dearest, 1.0)

    sizes = (w * p * m, w * p, p * m, w * m, p)
    start = np.concatenate(([0], np.cumsum(sizes)))
    x = np.arange(start[0], start[1]).reshape(w, p, m)
    y = np.arange(start[1], start[2]).reshape(w, p)
    z = np.arange(start[2], start[3]).reshape(p, m)
    u = np.arange(start[3], start[4]).reshape(w, m)
    c = np.arange(start[4], start[5])
    objective = np.concatenate(
        (np.repeat(price.ravel(), m), np.zeros(w * p), np.repeat(fixed, m), np.full(w * m, penalty), committed)
    )  # fmt: skip
    upper = np.concatenate(
        (
            (allowed[:, :, None] * wanted[:, None, :]).ravel(),
            (allowed & np.array([[work.whole] for work in workloads])).astype(float).ravel(),
            np.ones(p * m),
            wanted.ravel(),
            capacity.max(axis=1),
        )
    )
    integer = np.concatenate(
        (
            np.zeros(w * p * m),
            np.ones(w * p),
            np.repeat((fixed > 0).astype(float), m),
            np.zeros(w * m),
            np.zeros(p),
        )
    )

    rows: list[tuple[list[int], list[float], float, float]] = []
    for i, work in enumerate(workloads):
        for t in range(m):
            rows.append(([*x[i, :, t], u[i, t]], [1.0] * (p + 1), wanted[i, t], wanted[i, t]))
        if work.whole:
            rows.append((list(y[i]), [1.0] * p, 0.0, 1.0))
            for j in range(p):
                for t in range(m):
                    rows.append(([x[i, j, t], y[i, j]], [1.0, -wanted[i, t]], -np.inf, 0.0))
    for j in range(p):
        for t in range(m):
            indices = [*x[:, j, t], z[j, t]]
            rows.append((indices, [stretch[j]] * w + [-capacity[j, t]], -np.inf, 0.0))
            if committed[j]:
                rows.append(([*x[:, j, t], c[j]], [stretch[j]] * w + [-1.0], -np.inf, 0.0))
    matrix = sparse.csr_matrix(
        (
            np.concatenate([values for _, values, _, _ in rows]),
            (
                np.repeat(np.arange(len(rows)), [len(indices) for indices, *_ in rows]),
                np.concatenate([indices for indices, *_ in rows]),
            ),
        ),
        shape=(len(rows), int(start[5])),
    )
    limits = optimize.LinearConstraint(matrix, [row[2] for row in rows], [row[3] for row in rows])
    found = optimize.milp(
        objective,
        integrality=integer,
        bounds=optimize.Bounds(np.zeros(upper.size), upper),
        constraints=limits,
        options={"time_limit": max_seconds, "mip_rel_gap": 1e-6},
    )
    if found.status != 0 or found.x is None:
        raise InputError(
            "placement",
            msg("The placement was not solved within %(seconds)s s", seconds=max_seconds),
            value=w * p * m,
            limit=max_seconds,
        )
    best: Floats = np.asarray(found.x, dtype=np.float64)
    return _Solution(best[x], np.round(best[z]), best[u], float(objective @ best))


def _read(
    workloads: Sequence[Workload], pools: Sequence[Pool], solution: _Solution
) -> tuple[tuple[Assignment, ...], list[CostLine]]:
    assignments, lines = [], []
    for i, work in enumerate(workloads):
        for j, pool in enumerate(pools):
            cards = np.round(solution.cards[i, j], 6)
            if not (cards > _TOLERANCE).any():
                continue
            assignments.append(Assignment(work.name, pool.name, tuple(float(c) for c in cards)))
            used = round(float(cards.sum()) * work.hours_per_month * pool.stretch, 6)
            label = msg("%(workload)s in %(pool)s", workload=work.name, pool=pool.name)
            lines.append(
                exact.line(f"{work.name}/{pool.name}", label, pool.per_card_hour, used, "card-hour")
            )
    for j, pool in enumerate(pools):
        if pool.committed is None:
            continue
        held = round(float((solution.cards[:, j] * pool.stretch).sum(axis=0).max()), 6)
        if held > _TOLERANCE:
            label = msg("Cards committed in %(pool)s for all months", pool=pool.name)
            lines.append(exact.line(f"committed/{pool.name}", label, pool.committed, held, "card"))
    for j, pool in enumerate(pools):
        months = int(
            ((solution.opened[j] > 0.5) & (solution.cards[:, j].sum(axis=0) > _TOLERANCE)).sum()
        )
        if pool.fixed_per_month is not None and months:
            label = msg("Fixed price of %(pool)s", pool=pool.name)
            lines.append(
                exact.line(f"fixed/{pool.name}", label, pool.fixed_per_month, months, "month")
            )
    return tuple(assignments), lines


def _shortfalls(
    workloads: Sequence[Workload], pools: Sequence[Pool], solution: _Solution
) -> tuple[Shortfall, ...]:
    rows = []
    for i, work in enumerate(workloads):
        short = solution.unplaced[i]
        if not (short > 1e-4).any():
            continue
        names = [pool.name for pool in pools if exclusion(work, pool) is None]
        month = int(np.argmax(short > 1e-4))
        if not names:
            reason = msg(
                "No pool may take %(workload)s. %(why)s", workload=work.name, why=_why(work, pools)
            )
        else:
            reason = msg(
                "%(workload)s is short of %(cards)s cards in month %(month)s: no room is left in %(pools)s",
                workload=work.name,
                cards=round(float(short[month]), 1),
                month=month + 1,
                pools=", ".join(names),
            )
        rows.append(Shortfall(work.name, tuple(round(float(c), 6) for c in short), reason))
    return tuple(rows)


def _why(work: Workload, pools: Sequence[Pool]) -> Message:
    """Why no pool may take `work`: of pools with its cards if there are any, most frequent reason first."""
    there = [
        p for p in pools if not work.accelerators or p.accelerator in work.accelerators
    ] or pools
    reasons = [reason for pool in there if (reason := exclusion(work, pool)) is not None]
    count = Counter(map(str, reasons))
    by_text = {str(reason): reason for reason in reasons}
    told = sorted(by_text, key=lambda text: (-count[text], text))
    first, *others = (by_text[text] for text in told[:3])
    for other in others:
        first = msg("%(first)s; %(other)s", first=first, other=other)
    return first


def _binding(
    workloads: Sequence[Workload],
    pools: Sequence[Pool],
    solution: _Solution,
    extra: float,
    seconds: float,
) -> tuple[Binding, ...]:
    """Each full pool, with the saving found by solving again with more room in it."""
    rows = []
    for j, pool in enumerate(pools):
        used = (solution.cards[:, j] * pool.stretch).sum(axis=0)
        full = np.flatnonzero(used >= np.asarray(pool.capacity) - 1e-4)
        if not full.size:
            continue
        wider = replace(pool, capacity=tuple(c + extra for c in pool.capacity))
        eased = _solve(workloads, [*pools[:j], wider, *pools[j + 1 :]], seconds)
        gain = solution.objective - eased.objective
        placed = float(solution.unplaced.sum() - eased.unplaced.sum())
        if gain <= 1e-3:
            continue
        currency = pool.per_card_hour.currency
        if placed > 1e-3:
            text = msg(
                "%(pool)s binds: %(cards)s more cards in it would place %(placed)s card-months that now have no place",
                pool=pool.name,
                cards=extra,
                placed=round(placed, 1),
            )
            saving = Money(exact.to_decimal(0.0), currency).rounded()
        else:
            saving = Money(exact.to_decimal(gain), currency).rounded()
            text = msg(
                "%(pool)s binds: %(cards)s more cards in it would save %(saving)s",
                pool=pool.name,
                cards=extra,
                saving=saving.about(),
            )
        rows.append(
            (placed, gain, Binding(pool.name, tuple(int(t) for t in full), extra, saving, text))
        )
    return tuple(row[2] for row in sorted(rows, key=lambda row: (row[0], row[1]), reverse=True))


def _check(workloads: Sequence[Workload], pools: Sequence[Pool]) -> str:
    if not workloads or not pools:
        raise checks.refuse(
            "placement", f"{len(workloads)} workloads, {len(pools)} pools", "at least one of each"
        )
    for field, names in (
        ("workloads", [x.name for x in workloads]),
        ("pools", [x.name for x in pools]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise checks.refuse(field, ", ".join(twice), "names used once")
    checks.same_length("months", *(x.cards for x in workloads), *(x.capacity for x in pools))
    return checks.same_currency("pools", *(x.per_card_hour for x in pools))
