"""What the fleet did in a span of days, by pool and team, from the daily sums: a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from catalog.selectors import accelerators_by_slug, architecture_rows, tco_values
from core.exchange import MissingRate, convert
from core.messages import Message, msg
from core.models import Organisation, Team
from core.money import Money
from planning.economics.defaults import DEFAULTS
from planning.models.budgets import Bucket, LedgerEntry
from planning.models.plans import SpendKind
from planning.models.telemetry import SUMS, CardMonth, JobRun, Ownership, PoolDay

IDLE_BELOW = 0.05  # mean utilisation of a card over the span
DAY_HOURS = 24


@dataclass(frozen=True, slots=True)
class Use:
    """Means over hours that samples speak for; None where nothing said so. Shares 0–1, energy in kWh."""

    cards: int = 0
    hours: float = 0.0  # card-hours covered
    possible: float = 0.0  # card-hours of the span
    utilization: float | None = None
    sm: float | None = None
    tensor: float | None = None
    memory: float | None = None
    energy_kwh: float | None = None
    mean_power: float | None = None  # [W] of a card
    useful_hours: float | None = None  # utilisation × hours

    @property
    def covered(self) -> float | None:
        """Share of the span's card-hours with samples."""
        return min(self.hours / self.possible, 1.0) if self.possible else None

    @classmethod
    def of(cls, sums: Mapping[str, Any], cards: int, days: int) -> Use:
        """From sums of SUMS."""

        def mean(name: str) -> float | None:
            hours = sums[f"{name}_hours"] or 0
            return sums[f"{name}_sum"] / hours if hours else None

        power_hours = sums["power_hours"] or 0
        return cls(
            cards=cards, hours=sums["hours"] or 0.0, possible=float(cards * days * DAY_HOURS),
            utilization=mean("utilization"), sm=mean("sm"), tensor=mean("tensor"), memory=mean("memory"),
            energy_kwh=sums["energy_kwh"] if power_hours else None,
            mean_power=1000 * sums["energy_kwh"] / power_hours if power_hours else None,
            useful_hours=sums["utilization_sum"] if sums["utilization_hours"] else None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Queue:
    """How long jobs waited for their cards. [s]"""

    jobs: int = 0
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    longest: float | None = None
    interrupted: int = 0
    mfu: float | None = None

    def statistic(self, name: str) -> float | None:
        """mean, p50, p90 or longest."""
        found: float | None = getattr(self, name)
        return found


@dataclass(frozen=True, slots=True)
class Pool:
    """Cards of one team, kind and ownership."""

    team: str
    team_slug: str
    accelerator: str
    ownership: str
    use: Use
    idle: int  # cards that did next to nothing


@dataclass(frozen=True, slots=True)
class Fleet:
    """A span of days of the teams that the reader may see."""

    first: date
    last: date  # the day after
    pools: tuple[Pool, ...] = ()
    total: Use = field(default_factory=Use)
    idle_owned: int = 0
    days: tuple[tuple[date, float | None, float | None], ...] = ()  # day, utilisation, memory
    queues: Mapping[str, Queue] = field(default_factory=dict)  # by team; "" is all
    spent: Money | None = None
    cost_per_useful_hour: Money | None = None
    service_years: float | None = None  # over which it spreads purchases; None: no use was told
    holes: tuple[Message, ...] = ()

    @property
    def queue(self) -> Queue:
        return self.queues.get("", Queue())


def fleet(
    *, first: date, last: date, organisation: Organisation, teams: Iterable[int] | None = None
) -> Fleet:
    """Figures of [first, last), whole months. `teams` None: all, cards of no team too."""
    chosen = None if teams is None else list(teams)
    own = Q() if chosen is None else Q(team__in=chosen)
    rows = PoolDay.objects.filter(own, day__gte=first, day__lt=last)
    days = (last - first).days
    sums = {name: Sum(name) for name in SUMS}
    grouped = rows.order_by().values(
        "team_id", "team__name", "team__slug", "accelerator_slug", "ownership"
    )
    found = list(
        grouped.annotate(most=Max("cards"), **sums).order_by("team__name", "accelerator_slug")
    )
    idle = _idle(first, last, chosen)
    pools = tuple(
        Pool(
            team=row["team__name"] or "", team_slug=row["team__slug"] or "",
            accelerator=row["accelerator_slug"], ownership=row["ownership"],
            use=Use.of(row, row["most"], days),
            idle=idle.get((row["team_id"], row["accelerator_slug"], row["ownership"]), 0),
        )
        for row in found
    )  # fmt: skip
    rows_found: list[dict[str, Any]] = [dict(row) for row in found]
    total = Use.of(
        {name: sum((row[name] or 0.0 for row in rows_found), 0.0) for name in SUMS},
        sum(row["most"] for row in rows_found),
        days,
    )
    by_day = rows.order_by().values("day").annotate(**{n: Sum(n) for n in SUMS}).order_by("day")
    queues = _queues(first, last, organisation, chosen)
    spent, holes = _spent(first, last, organisation, chosen)
    told = [row["day"] for row in by_day]
    cost, years = None, None
    if told and total.useful_hours:
        years = service_years()
        borne, missing = _borne(years, first, last, (told[0], told[-1]), organisation, chosen)
        if borne is not None and borne.amount > 0:
            cost = Money(borne.amount / Decimal(repr(total.useful_hours)), borne.currency).rounded()
        elif borne is not None:
            holes.append(
                msg("No spending falls into this span, so the cost of an hour is not known.")
            )
        holes += [one for one in missing if one not in holes]
    elif told:
        holes.append(
            msg("No utilisation was told, so the cost of a useful hour is not known.")
            if total.useful_hours is None
            else msg(
                "The cards did no work in this span, so there is no useful hour to have a cost."
            )
        )
    if not found:
        holes.append(msg("No source told what cards did in this span."))
    if not queues:
        holes.append(msg("No source told about jobs in this span, so queue times are not known."))
    return Fleet(
        first=first, last=last, pools=pools, total=total,
        idle_owned=sum(pool.idle for pool in pools if pool.ownership != Ownership.CLOUD),
        days=tuple((row["day"], (day := Use.of(row, 0, 1)).utilization, day.memory) for row in by_day),
        queues=queues, spent=spent, cost_per_useful_hour=cost, service_years=years,
        holes=tuple(holes),
    )  # fmt: skip


def _idle(first: date, last: date, teams: list[int] | None) -> dict[tuple[Any, ...], int]:
    """Cards whose mean utilisation over the span is next to nothing, by pool."""
    own = Q() if teams is None else Q(card__team__in=teams)
    cards = (
        CardMonth.objects.filter(own, day__gte=first, day__lt=last)
        .order_by()
        .values("card_id", "card__team_id", "card__accelerator_slug", "card__ownership")
        .annotate(used=Sum("utilization_sum"), told=Sum("utilization_hours"))
        .filter(told__gt=0, used__lt=F("told") * IDLE_BELOW)
    )
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    for card in cards:
        counts[card["card__team_id"], card["card__accelerator_slug"], card["card__ownership"]] += 1
    return counts


def _span(first: date, last: date, organisation: Organisation) -> tuple[datetime, datetime]:
    zone = organisation.zone
    return (
        datetime.combine(first, time.min, tzinfo=zone),
        datetime.combine(last, time.min, tzinfo=zone),
    )


def _queues(
    first: date, last: date, organisation: Organisation, teams: list[int] | None
) -> dict[str, Queue]:
    """Waiting times of jobs that started in the span, by team, all together under "". Jobs still waiting for longer
    than the span's end count with what they waited so far, or a queue nobody leaves would look short."""
    start, end = _span(first, last, organisation)
    runs: QuerySet[JobRun] = JobRun.objects.all()
    if teams is not None:
        runs = runs.filter(team__in=teams)
    runs = runs.filter(
        Q(started_at__gte=start, started_at__lt=end)
        | Q(started_at=None, ended_at=None, submitted_at__gte=start, submitted_at__lt=end)
    )
    waits: dict[str, list[float]] = defaultdict(list)
    interrupted: dict[str, int] = defaultdict(int)
    mfus: dict[str, list[tuple[float, float]]] = defaultdict(list)
    peaks = _Peaks()
    for row in runs.values_list(
        "team__name", "waited_seconds", "submitted_at", "started_at", "interrupted", "tokens",
        "model_slug", "cards", "ended_at", "source__accelerator_slug",
    ):  # fmt: skip
        team, waited, submitted, started, broken, tokens, model, cards, ended, accelerator = row
        if started is None and submitted is not None:
            waited = (end - submitted).total_seconds()
        for key in {team or "–", ""}:
            if waited is not None:
                waits[key].append(waited)
            interrupted[key] += broken
            if tokens and cards and started and ended:
                share = peaks.mfu(
                    model, accelerator, tokens, cards * (ended - started).total_seconds()
                )
                if share is not None:
                    mfus[key].append((share, cards * (ended - started).total_seconds()))
    return {key: _queue(values, interrupted[key], mfus[key]) for key, values in waits.items()}


def _queue(waits: list[float], interrupted: int, mfus: list[tuple[float, float]]) -> Queue:
    array = np.array(waits)
    weight = sum(w for _share, w in mfus)
    return Queue(
        jobs=len(waits), mean=float(array.mean()), p50=float(np.percentile(array, 50)),
        p90=float(np.percentile(array, 90)), longest=float(array.max()), interrupted=interrupted,
        mfu=sum(share * w for share, w in mfus) / weight if weight else None,
    )  # fmt: skip


class _Peaks:
    """Rates and sizes from the catalogue, read only when a job reports tokens."""

    def __init__(self) -> None:
        self._models: dict[str, dict[str, Any]] | None = None
        self._accelerators: dict[str, Any] = {}

    def mfu(self, model: str, accelerator: str, tokens: float, card_seconds: float) -> float | None:
        """6 · parameters · tokens over what the cards could do at dense BF16; None when a part is unknown."""
        if not model or not accelerator or card_seconds <= 0:
            return None
        if self._models is None:
            self._models = architecture_rows()
            self._accelerators = dict(accelerators_by_slug())
        card = self._accelerators.get(accelerator)
        row = self._models.get(model) or {}
        size = row.get("active_parameters") or row.get("parameters")
        peak = (card.peak_flops or {}).get("bf16") if card is not None else None
        return 6 * size * tokens / (card_seconds * peak) if size and peak else None


def _spent(
    first: date, last: date, organisation: Organisation, teams: list[int] | None
) -> tuple[Money | None, list[Message]]:
    """Actual entries posted in the span, in the base currency; None when nothing was posted or a rate is missing, which
    is told."""
    start, end = _span(first, last, organisation)
    own = Q() if teams is None else Q(budget__team__in=teams)
    rows = list(
        LedgerEntry.objects.filter(
            own, bucket=Bucket.ACTUAL, posted_at__gte=start, posted_at__lt=end
        )
        .order_by()
        .values_list("budget__currency")
        .annotate(total=Sum("amount"))
    )
    if not rows:
        return None, []
    amount, missing = _converted(dict(rows), organisation.currency, last)
    return None if amount is None else amount.rounded(), missing


def _converted(
    sums: Mapping[str, Decimal], currency: str, day: date
) -> tuple[Money | None, list[Message]]:
    """Sums by currency as one, unrounded, at the rates of `day`; None, and why, where one is missing."""
    try:
        parts = [convert(Money(amount, own), currency, day) for own, amount in sums.items()]
    except MissingRate as error:
        return None, [error.message]
    return Money(sum((part.amount for part in parts), Decimal(0)), currency), []


def service_years() -> float:
    """Years over which a purchase is spread: the organisation's depreciation. [year]"""
    _low, years, _high = tco_values().get("depreciation.years", (None,) * 3)
    return float(years or DEFAULTS["depreciation.years"].value)


def _borne(
    years: float,
    first: date,
    last: date,
    told: tuple[date, date],
    organisation: Organisation,
    teams: list[int] | None,
) -> tuple[Money | None, list[Message]]:
    """What the span bears, in the base currency: cloud bills posted in it, and of each purchase its part of the days
    that telemetry speaks for (`told`: first and last), straight over the years of service. A purchase price in the
    month of its invoice would say that an hour cost what a card does. None, and why, without a rate.
    """
    start, end = _span(first, last, organisation)
    life = timedelta(days=round(years * 365.25))
    own = Q() if teams is None else Q(budget__team__in=teams)
    rows = (
        LedgerEntry.objects.filter(own, bucket=Bucket.ACTUAL, posted_at__lt=end)
        .filter(
            Q(budget__kind=SpendKind.CLOUD, posted_at__gte=start)
            | Q(budget__kind=SpendKind.PURCHASE, posted_at__gt=start - life)
        )
        .order_by()
        .annotate(on=TruncDate("posted_at", tzinfo=organisation.zone))
        .values_list("budget__kind", "budget__currency", "on")
        .annotate(total=Sum("amount"))
    )
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for kind, currency, on, amount in rows:
        share = Decimal(1)
        if kind == SpendKind.PURCHASE:
            days = (min(told[1] + timedelta(days=1), on + life) - max(told[0], on)).days
            share = Decimal(max(days, 0)) / life.days
        sums[currency] += amount * share
    return _converted(sums, organisation.currency, last)


def teams_with_cards() -> QuerySet[Team]:
    """Teams whose cards have telemetry."""
    return Team.objects.filter(
        pk__in=PoolDay.objects.order_by().values("team").annotate(n=Count("pk")).values("team")
    )
