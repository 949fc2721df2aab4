"""Daily and monthly sums behind the pages: made from the hourly rows of the days that changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.db import connection, transaction

from core.organisation import organisation
from planning.models.telemetry import SUMS, CardDay, CardHour

# Sums of one series' hours. Energy is power over the seconds that the samples speak for: a gap adds nothing.
_SHARE = "h.covered / 3600.0"
_MEANS = ("utilization_mean", "sm_mean", "tensor_mean", "memory_mean", "power_mean")
# Of a card and hour: share of the hour that is told, and what was told of it, figure by figure.
_OF_AN_HOUR = ", ".join(
    [
        f"SUM({_SHARE}) AS told",
        *(
            part
            for name in _MEANS
            for part in (
                f"SUM(CASE WHEN h.{name} IS NULL THEN 0 ELSE {_SHARE} END) AS {name}_told",
                f"SUM(COALESCE(h.{name}, 0) * {_SHARE}) AS {name}_sum",
            )
        ),
    ]
)


def _at_most_one(told: str) -> str:
    return f"CASE WHEN x.{told} > 1 THEN 1 ELSE x.{told} END"


# A card has one hour in an hour. Several series may speak for the same one: two exporters, jobs that share the card,
# a pod whose series outlives it by minutes. Then their mean counts, not their sum.
_FROM_HOURS = (
    f"SUM({_at_most_one('told')})",
    *(
        part
        for name in _MEANS
        for part in (
            f"SUM({_at_most_one(name + '_told')})",
            f"SUM(x.{name}_sum / CASE WHEN x.{name}_told > 1 THEN x.{name}_told ELSE 1 END)"
            + (" / 1000.0" if name == "power_mean" else ""),
        )
    ),
)
_NAMES = ", ".join(SUMS)
_SETS = ", ".join(f"{name} = excluded.{name}" for name in SUMS)


def local_days(moments: Iterable[datetime], zone: ZoneInfo) -> set[date]:
    """The local days in which `moments` lie."""
    return {moment.astimezone(zone).date() for moment in moments}


def refresh_days(days: Iterable[date]) -> None:
    """Make the sums of `days` (local to the organisation) anew from the hours. Safe to repeat."""
    wanted = sorted(set(days))
    zone = organisation().zone
    for day in wanted:
        with transaction.atomic():
            _cards(day, zone)
            _pools(day)
    for month in sorted({day.replace(day=1) for day in wanted}):
        with transaction.atomic():
            _months(month)


def _cards(day: date, zone: ZoneInfo) -> None:
    start = datetime.combine(day, time.min, tzinfo=zone)
    end = datetime.combine(day + timedelta(days=1), time.min, tzinfo=zone)
    to_db = CardHour._meta.get_field("hour").get_db_prep_value
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO planning_cardday (card_id, day, {_NAMES}) "
            f"SELECT x.card_id, %s, {', '.join(_FROM_HOURS)} FROM ("
            f"SELECT s.card_id, {_OF_AN_HOUR} FROM planning_cardhour h "
            "JOIN planning_cardseries s ON s.id = h.series_id WHERE h.hour >= %s AND h.hour < %s "
            "GROUP BY s.card_id, h.hour) x "
            # SQLite takes ON for a join's unless a WHERE stands before it
            f"WHERE 1 = 1 GROUP BY x.card_id ON CONFLICT (day, card_id) DO UPDATE SET {_SETS}",
            [_day(day), to_db(start, connection), to_db(end, connection)],
        )


def _pools(day: date) -> None:
    sums = ", ".join(f"SUM(d.{name})" for name in SUMS)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM planning_poolday WHERE day = %s", [_day(day)])
        cursor.execute(
            f"INSERT INTO planning_poolday (day, team_id, accelerator_slug, ownership, cards, {_NAMES}) "
            f"SELECT d.day, c.team_id, c.accelerator_slug, c.ownership, COUNT(*), {sums} "
            "FROM planning_cardday d JOIN planning_telemetrycard c ON c.id = d.card_id "
            "WHERE d.day = %s GROUP BY d.day, c.team_id, c.accelerator_slug, c.ownership",
            [_day(day)],
        )


def _months(month: date) -> None:
    sums = ", ".join(f"SUM({name})" for name in SUMS)
    following = (month + timedelta(days=32)).replace(day=1)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO planning_cardmonth (card_id, day, {_NAMES}) SELECT card_id, %s, {sums} "
            "FROM planning_cardday WHERE day >= %s AND day < %s "
            f"GROUP BY card_id ON CONFLICT (day, card_id) DO UPDATE SET {_SETS}",
            [_day(month), _day(month), _day(following)],
        )


def _day(day: date) -> str | date:
    found: str | date = CardDay._meta.get_field("day").get_db_prep_value(day, connection)
    return found
