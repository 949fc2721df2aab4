"""What a review freezes of use, supply, forecast, recommendations and calibration. JSON values; holes are named."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict
from datetime import date, timedelta
from statistics import median
from typing import Any

import numpy as np
from django.db.models import Q, Sum

from catalog.models import OfferPrice
from catalog.selectors import accelerators_by_slug, price_span
from core.exchange import MissingRate, convert
from core.messages import Message, msg
from core.models import Organisation, Team
from core.money import Money
from core.quarters import Quarter
from planning.actuals import TERMS_AHEAD, QuarterActuals
from planning.calibration.forecast import Forecast, forecast
from planning.calibration.pools import PoolState, advise
from planning.models.calibration import MeasuredOutcome
from planning.models.telemetry import Ownership, PoolDay
from planning.selectors.calibration import in_force, scores
from planning.selectors.reserved import Reserved, reserved
from planning.selectors.telemetry import Fleet, Pool, fleet

HISTORY_DAYS = 400
_Key = tuple[str, str, str]  # team slug, accelerator, ownership


def use_figures(
    *,
    period: Quarter,
    organisation: Organisation,
    actuals: QuarterActuals,
    day: date,
    holes: list[Message],
    statistic: str,
    queue_limit: float,
    low_use: float,
    team: Team | None = None,
) -> dict[str, Any]:
    """Keys `use`, `queues`, `supply`, `terms`, `forecast`, `recommendations`, `calibration` of a snapshot."""
    used = fleet(
        first=period.start,
        last=period.end,
        organisation=organisation,
        teams=None if team is None else [team.pk],
    )
    holes.extend(used.holes)
    series = _busy(period.end, day, team)
    ahead = 91
    told = {key: forecast(np.array(days), ahead) for key, days in series.items()}
    prices = _prices(organisation, day)
    ordered: Counter[str] = Counter()
    for line in actuals.orders:
        ordered[line.accelerator] += max(line.ordered - line.received, 0)
    held = [
        row for row in reserved()
        if row.first_day < period.end and (row.last_day is None or row.last_day >= period.start)
        and (team is None or row.team_slug == team.slug)
    ]  # fmt: skip
    by_pool = _by_pool(held, period.end)
    states = [
        _state(
            pool, used, told, prices, ordered if pool.ownership == "owned" else Counter(), statistic,
            by_pool.pop(_pool_key(pool), ()), period.end,
        )
        for pool in used.pools
    ]  # fmt: skip
    # reserved and silent: no source tells whether they are used
    states += [
        PoolState(_name(key), key[1], key[2], sum(n for _day, n in terms), None, terms=terms)
        for key, terms in by_pool.items()
    ]
    advice = advise(states, low_use=low_use, queue_limit=queue_limit)
    if not used.pools:
        holes.append(
            msg("No telemetry source is connected, so utilisation and queue times are not known.")
        )
    version = in_force()
    outcomes = scores(MeasuredOutcome.objects.all()[:5000])
    if not outcomes:
        holes.append(msg("No outcome was held against its estimate yet."))
    return {
        "use": [_pool(pool) for pool in used.pools],
        "use_days": [[d.isoformat(), u, m] for d, u, m in used.days],
        "use_total": asdict(used.total),
        "idle_owned": used.idle_owned,
        "cost_per_useful_hour": str(used.cost_per_useful_hour.amount)
        if used.cost_per_useful_hour
        else None,
        "cost_per_useful_hour_basis": "spread",  # older snapshots: purchases in the quarter of their invoice
        "queues": [
            {"team": team, **asdict(queue)} for team, queue in sorted(used.queues.items())
        ],
        "supply": _supply(used, actuals),
        "terms": _terms(held, actuals, period, holes),
        "forecast": [
            {
                "pool": _name(key), "accelerator": key[1], "busy": f.mean, "low": f.low, "high": f.high,
                "peak": f.peak, "error": f.error, "tests": f.tests,
                "past": _weeks(series[key]), "weeks": _weeks(list(f.days)),
            }
            for key, f in told.items()
            if f is not None
        ],
        "recommendations": [
            {
                "pool": one.pool.key, "accelerator": one.pool.accelerator, "ownership": one.pool.ownership,
                "cards": one.pool.cards, "utilization": one.pool.utilization, "action": one.action.value,
                "change": one.cards, "to": one.to, "lines": [line.to_json() for line in one.lines],
                "waiting": None if one.waiting is None else f"{one.waiting:.2f}",
            }
            for one in advice
        ],
        "calibration": [asdict(score) for score in outcomes if not score.month],
        "calibration_months": [asdict(score) for score in outcomes if score.month],
        "calibration_version": version.number if version else None,
    }  # fmt: skip


def _name(key: _Key) -> str:
    team, accelerator, ownership = key
    return f"{team or '–'} · {accelerator or '–'} · {ownership}"


def _pool_key(pool: Pool) -> _Key:
    return pool.team_slug, pool.accelerator, pool.ownership


def _busy(end: date, day: date, team: Team | None = None) -> dict[_Key, list[float]]:
    """Busy cards by day up to the quarter's end or today, NaN for days without samples."""
    last = min(end, day)
    first = last - timedelta(days=HISTORY_DAYS)
    own = Q() if team is None else Q(team=team)
    rows = (
        PoolDay.objects.filter(own, day__gte=first, day__lt=last)
        .order_by()
        .values_list("day", "team__slug", "accelerator_slug", "ownership")
        .annotate(used=Sum("utilization_sum"), told=Sum("utilization_hours"), cards=Sum("cards"))
    )
    found: dict[_Key, dict[date, float]] = defaultdict(dict)
    for at, slug, accelerator, ownership, used, told, cards in rows:
        if told:
            found[slug or "", accelerator, ownership][at] = used / told * cards
    series = {}
    for key, days in found.items():
        start = min(days)
        span = (last - start).days
        series[key] = [days.get(start + timedelta(days=n), float("nan")) for n in range(span)]
    return series


def _weeks(days: list[float]) -> list[float | None]:
    """Means of whole weeks; None for a week without samples."""
    found: list[float | None] = []
    for start in range(0, len(days) - 6, 7):
        known = [v for v in days[start : start + 7] if v == v]
        found.append(round(sum(known) / len(known), 3) if known else None)
    return found


def _state(
    pool: Pool,
    used: Fleet,
    told: dict[_Key, Forecast | None],
    prices: dict[str, float],
    ordered: Counter[str],
    statistic: str,
    terms: tuple[tuple[date, int], ...],
    next_from: date,
) -> PoolState:
    f = told.get(_pool_key(pool))
    queue = used.queues.get(pool.team)
    order = ordered.pop(pool.accelerator, 0)  # an order is counted for one pool only
    return PoolState(
        key=_name(_pool_key(pool)), accelerator=pool.accelerator, ownership=pool.ownership,
        cards=pool.use.cards, utilization=pool.use.utilization, sm=pool.use.sm,
        queue=queue.statistic(statistic) if queue else None,
        busy_low=f.low if f else None, busy=f.mean if f else None, busy_high=f.high if f else None,
        on_order=order, price_hour=prices.get(pool.accelerator), terms=terms, next_from=next_from,
    )  # fmt: skip


def _by_pool(held: list[Reserved], end: date) -> dict[_Key, tuple[tuple[date, int], ...]]:
    """Terms that outlast the quarter, by pool; an end that nobody knows is in no pool."""
    found: dict[_Key, list[tuple[date, int]]] = defaultdict(list)
    for row in held:
        if row.last_day is not None and row.last_day >= end:
            key = (row.team_slug, row.accelerator, Ownership.RESERVED.value)
            found[key].append((row.last_day, row.cards))
    return {key: tuple(sorted(terms)) for key, terms in found.items()}


def _terms(
    held: list[Reserved], actuals: QuarterActuals, period: Quarter, holes: list[Message]
) -> list[dict[str, Any]]:
    """What ends within the quarter or `TERMS_AHEAD` after it: reservations, cloud commitments, warranties."""
    until = period.end + TERMS_AHEAD
    lines: list[dict[str, Any]] = []

    def add(what: str, last: date | None, **more: Any) -> None:
        row = {
            "what": what, "last_day": last.isoformat() if last else None, "source": "", "vendor": "", "team": "",
            "accelerator": "", "kind": "", "number": None, "unit": "",
        }  # fmt: skip
        lines.append(row | more)

    for row in held:
        if row.last_day is None or row.last_day < until:
            add("reservation", row.last_day, source=row.request, team=row.team, accelerator=row.accelerator,
                kind=row.mode, number=row.cards)  # fmt: skip
    for left in actuals.commitments:
        if left.last_day is None or left.last_day < until:
            add("commitment", left.last_day, source=left.order, vendor=left.vendor, team=left.team,
                accelerator=left.accelerator, number=float(left.left), unit=left.unit)  # fmt: skip
    for cover in actuals.warranties:
        add("warranty", cover.last_day, source=cover.order, vendor=cover.vendor, team=cover.team,
            accelerator=cover.accelerator, kind=cover.kind, number=cover.units)  # fmt: skip
    if endless := sum(row.last_day is None for row in held):
        holes.append(msg("For %(n)s requests no plan tells when the reservation ends.", n=endless))
    return lines


def _prices(organisation: Organisation, day: date) -> dict[str, float]:
    """Middle of the span of prices on demand of a card, in the base currency, by slug. No rate, no price."""
    slugs = {card.pk: slug for slug, card in accelerators_by_slug().items()}
    found = {}
    for pk, row in price_span(OfferPrice.Kind.ON_DEMAND).items():
        middle = Money(median([row["low"], row["high"]]), "USD")
        try:
            found[slugs[pk]] = float(convert(middle, organisation.currency, day).amount)
        except (MissingRate, KeyError):
            continue
    return found


def _pool(pool: Pool) -> dict[str, Any]:
    return {
        "team": pool.team, "accelerator": pool.accelerator, "ownership": pool.ownership, "idle": pool.idle,
        **asdict(pool.use), "covered": pool.use.covered,
    }  # fmt: skip


def _supply(used: Fleet, actuals: QuarterActuals) -> list[dict[str, Any]]:
    """By accelerator: delivered, in service, with telemetry by ownership, on order with the promised day."""
    rows: dict[str, dict[str, Any]] = {}

    def row(accelerator: str) -> dict[str, Any]:
        return rows.setdefault(
            accelerator,
            {"accelerator": accelerator, "delivered": 0, "in_service": 0, "owned": 0, "reserved": 0, "cloud": 0,
             "on_order": 0, "promised": ""},
        )  # fmt: skip

    for card in actuals.cards:
        row(card.accelerator)["delivered"] += 1
        row(card.accelerator)["in_service"] += card.state == "in_service"
    for pool in used.pools:
        row(pool.accelerator)[pool.ownership] += pool.use.cards
    for line in actuals.orders:
        missing = max(line.ordered - line.received, 0)
        if missing:
            row(line.accelerator)["on_order"] += missing
            promised = line.promised_on.isoformat() if line.promised_on else ""
            days = {day for day in (row(line.accelerator)["promised"], promised) if day}
            row(line.accelerator)["promised"] = min(days, default="")
    return [rows[name] for name in sorted(rows)]
