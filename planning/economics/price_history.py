"""Spot price histories: a CSV or a cloud's own JSON answer, checked for gaps, mixed series and mixed currencies.

Read are AWS ``describe-spot-price-history`` (change points; the cloud prints no currency: USD, in China CNY) and
Alibaba Cloud ``DescribeSpotPriceHistory`` (with its currency); the CSV has ``timestamp,price`` and may have
``currency,zone,instance_type``. A price holds from its time until the next one.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from core.errors import InputError
from core.messages import msg
from planning.economics import checks, defaults
from planning.economics.checks import Floats


@dataclass(frozen=True, slots=True)
class PricePoint:
    """One observation: from `at`, this price an hour."""

    at: datetime
    price: float
    currency: str
    series: str  # zone and instance type, "" when not stated


@dataclass(frozen=True, slots=True, eq=False)
class PriceHistory:
    """Prices an hour as steps: `price[i]` holds from `hour[i]` to `hour[i + 1]`, hours since `start`."""

    start: datetime
    hour: Floats  # shape (n,), first is 0
    price: Floats  # shape (n,)
    end_hour: float
    currency: str

    @property
    def edges(self) -> Floats:
        """All borders of the steps, the end too. [h], shape (n + 1,)"""
        result: Floats = np.append(self.hour, self.end_hour)
        return result

    def at(self, hour: float) -> datetime:
        """The instant `hour` hours after the start."""
        return self.start + timedelta(hours=hour)


def history(
    points: Iterable[PricePoint], *, series: str | None = None, max_gap_hours: float | None = None
) -> PriceHistory:
    """One series of prices out of `points`.

    A regular series (nine of ten steps alike) may miss no step; in one of change points no silence may be longer
    than `max_gap_hours` (default 48 h). The last price holds for one usual step.

    Raises
    ------
    InputError
        On fewer than two points, several series of which none is chosen, two currencies, a negative price, two
        prices at one time, or a gap.
    """
    chosen = _one_series(list(points), series)
    currencies = sorted({point.currency for point in chosen})
    if len(currencies) != 1:
        raise InputError(
            "history.currency",
            msg("The history has several currencies: %(found)s", found=", ".join(currencies)),
            value=tuple(currencies),
            limit=1,
        )
    ordered = _without_repeats(sorted(chosen, key=lambda point: point.at))
    if len(ordered) < 2:
        raise checks.refuse("history", len(ordered), "at least two points in time")
    start = ordered[0].at
    hour = np.array([(point.at - start).total_seconds() / 3600 for point in ordered])
    step = np.diff(hour)
    usual = float(np.median(step))
    _refuse_gap(ordered, step, usual, max_gap_hours)
    price = np.array([point.price for point in ordered])
    return PriceHistory(start, hour, price, float(hour[-1]) + usual, currencies[0])


def parse_csv(text: str, *, currency: str | None = None) -> tuple[PricePoint, ...]:
    """Points of a CSV with a header. `currency` stands in where the file has no such column."""
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff")))
    missing = {"timestamp", "price"} - set(reader.fieldnames or ())
    if missing:
        raise checks.refuse(
            "history.header", ",".join(reader.fieldnames or ()), "timestamp,price[,currency,...]"
        )
    points = []
    for row in reader:
        where = f"history line {reader.line_num}"
        code = row.get("currency") or currency
        if not code:
            raise checks.refuse(f"{where}: currency", "missing", "a currency code")
        names = [row.get(key) or "" for key in ("zone", "instance_type")]
        points.append(_point(where, row["timestamp"], row["price"], code, names))
    return tuple(points)


def parse_json(text: str, *, currency: str | None = None) -> tuple[PricePoint, ...]:
    """Points of a cloud's own JSON answer (AWS or Alibaba Cloud).

    AWS prints no currency: `currency` says it, else it is CNY for zones ``cn-*`` and USD elsewhere.
    """
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            "history",
            msg("The history is not valid JSON (line %(line)s)", line=error.lineno),
            value=error.pos,
        ) from error
    if isinstance(data, dict) and isinstance(data.get("SpotPriceHistory"), list):
        return tuple(_aws(i, row, currency) for i, row in enumerate(data["SpotPriceHistory"]))
    if isinstance(data, dict) and isinstance(data.get("SpotPrices"), dict):
        rows = data["SpotPrices"].get("SpotPriceType", [])
        code = data.get("Currency") or currency
        if not code:
            raise checks.refuse("history.Currency", "missing", "a currency code")
        return tuple(_alibaba(i, row, code) for i, row in enumerate(rows))
    raise checks.refuse(
        "history", "unknown JSON", "SpotPriceHistory (AWS) or SpotPrices (Alibaba Cloud)"
    )


def hour_of_week_means(prices: PriceHistory, *, utc_offset_hours: float = 0.0) -> Floats:
    """Mean price in each hour of the local week, Monday 0:00 first; NaN-free: refused under a week. [price/h]"""
    if prices.end_hour < 168:
        raise checks.refuse("history", f"{prices.end_hour:g} h", ">= 168 h, a whole week")
    local = prices.start.astimezone(UTC) + timedelta(hours=utc_offset_hours)
    offset = local.weekday() * 24 + local.hour
    hours = np.arange(int(prices.end_hour))
    value = prices.price[np.searchsorted(prices.hour, hours + 0.5, side="right") - 1]
    slot = (hours + offset) % 168
    result: Floats = np.bincount(slot, value, 168) / np.bincount(slot, minlength=168)
    return result


def _aws(index: int, row: Any, currency: str | None) -> PricePoint:
    where = f"history.SpotPriceHistory[{index}]"
    zone = _text(where, row, "AvailabilityZone")
    code = currency or ("CNY" if zone.startswith("cn-") else "USD")
    names = [zone, _text(where, row, "InstanceType"), str(row.get("ProductDescription") or "")]
    return _point(
        where, _text(where, row, "Timestamp"), _text(where, row, "SpotPrice"), code, names
    )


def _alibaba(index: int, row: Any, currency: str) -> PricePoint:
    where = f"history.SpotPrices[{index}]"
    names = [
        _text(where, row, "ZoneId"),
        _text(where, row, "InstanceType"),
        str(row.get("NetworkType") or ""),
    ]
    return _point(
        where, _text(where, row, "Timestamp"), _text(where, row, "SpotPrice"), currency, names
    )


def _text(where: str, row: Any, key: str) -> str:
    if not isinstance(row, dict) or key not in row:
        raise checks.refuse(f"{where}.{key}", "missing", "present")
    return str(row[key])


def _point(where: str, at: str, price: str, currency: str, names: Sequence[str]) -> PricePoint:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError as error:
        raise checks.refuse(f"{where}: timestamp", at, "an ISO 8601 time") from error
    try:
        amount = float(price)
    except ValueError as error:
        raise checks.refuse(f"{where}: price", price, "a number") from error
    if not 0 <= amount < math.inf:
        raise checks.refuse(f"{where}: price", price, ">= 0")
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return PricePoint(aware, amount, currency, " ".join(name for name in names if name))


def _one_series(points: list[PricePoint], series: str | None) -> list[PricePoint]:
    found = sorted({point.series for point in points})
    if series is None and len(found) > 1:
        raise InputError(
            "series",
            msg("The history has several series, choose one: %(found)s", found="; ".join(found)),
            value=len(found),
            limit=1,
        )
    chosen = [point for point in points if series is None or point.series == series]
    if not chosen:
        raise checks.refuse(
            "series", series or "empty history", "; ".join(found) or "at least two points"
        )
    return chosen


def _without_repeats(ordered: Sequence[PricePoint]) -> list[PricePoint]:
    kept: list[PricePoint] = []
    for point in ordered:
        if kept and kept[-1].at == point.at:
            if kept[-1].price != point.price:
                raise InputError(
                    "history",
                    msg("Two prices at %(at)s", at=point.at.isoformat()),
                    value=(kept[-1].price, point.price),
                    limit=1,
                )
            continue
        kept.append(point)
    return kept


def _refuse_gap(
    points: Sequence[PricePoint], step: Floats, usual: float, given: float | None
) -> None:
    regular = float(np.mean(np.isclose(step, usual, rtol=0.01))) >= 0.9
    limit = 1.5 * usual if regular else defaults.value("history.max_gap_hours")
    if given is not None:
        checks.positive("max_gap_hours", given)
        limit = given
    wide = np.flatnonzero(step > limit)
    if wide.size:
        index = int(wide[0])
        raise InputError(
            "history",
            msg(
                "The history has a gap of %(gap)s h from %(start)s to %(end)s",
                gap=round(float(step[index]), 2),
                start=points[index].at.isoformat(),
                end=points[index + 1].at.isoformat(),
            ),
            value=float(step[index]),
            limit=limit,
        )
