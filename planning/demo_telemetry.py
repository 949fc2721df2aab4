"""Made-up telemetry of the demo organisation: the same every time for the same day. Never loaded elsewhere."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from core.models import Organisation, Team
from planning.models.calibration import MeasuredOutcome, OutcomeKind
from planning.models.telemetry import (
    CardMonth,
    JobRun,
    Ownership,
    PoolDay,
    SourceKind,
    TelemetryCard,
    TelemetrySource,
)

DAYS = 240
# team, accelerator, ownership, cards, mean use at the end, trend a day, GPU power [W]
POOLS = (
    ("foundation", "nvidia-h100-sxm5-80gb", Ownership.OWNED, 64, 0.86, 0.0012, 560),
    ("foundation", "nvidia-a100-sxm4-80gb", Ownership.RESERVED, 16, 0.18, -0.0008, 210),
    ("search", "nvidia-l40s-48gb", Ownership.OWNED, 24, 0.22, 0.0, 160),
    ("search", "nvidia-h100-sxm5-80gb", Ownership.OWNED, 16, 0.24, -0.0006, 240),
)


def load_telemetry(org: Organisation, today: date) -> None:
    """Pools, queues and outcomes of the last months, for teams that exist."""
    random = np.random.default_rng(20_261)
    teams = {team.slug: team for team in Team.objects.all()}
    source = TelemetrySource.objects.create(
        name="Demo fleet", kind=SourceKind.PUSH, time_zone=org.time_zone, active=False
    )
    for slug, accelerator, ownership, count, level, trend, power in POOLS:
        if slug in teams:
            _pool(
                source,
                teams[slug],
                accelerator,
                ownership,
                count,
                level,
                trend,
                power,
                today,
                random,
            )
            _jobs(source, teams[slug], accelerator, level, today, org, random)
    _outcomes(today, org, random)


def _pool(
    source: TelemetrySource, team: Team, accelerator: str, ownership: str, count: int, level: float,
    trend: float, power: float, today: date, random: np.random.Generator,
) -> None:  # fmt: skip
    cards = TelemetryCard.objects.bulk_create(
        TelemetryCard(source=source, name=f"demo-{team.slug}-{accelerator}-{n:02d}", team=team,
                      accelerator_slug=accelerator, ownership=ownership)
        for n in range(count)
    )  # fmt: skip
    share = np.clip(random.normal(1.0, 0.15, count), 0.0, 1.6)
    share[: max(count // 12, 1)] = 0.02  # a few cards that nobody uses
    share *= count / share.sum()
    months: dict[date, float] = {}
    rows = []
    for back in range(DAYS, 0, -1):
        day = today - timedelta(days=back)
        weekend = 0.8 if day.weekday() >= 5 else 1.0
        use = float(np.clip((level - trend * back) * weekend + random.normal(0, 0.03), 0.01, 0.99))
        rows.append(PoolDay(day=day, team=team, accelerator_slug=accelerator, ownership=ownership, cards=count,
                            **_sums(use, 24.0 * count, power)))  # fmt: skip
        first = day.replace(day=1)
        months[first] = months.get(first, 0.0) + use * 24
    PoolDay.objects.bulk_create(rows)
    hours = {
        first: 24.0 * sum(1 for row in rows if row.day.replace(day=1) == first) for first in months
    }
    CardMonth.objects.bulk_create(
        CardMonth(card=card, day=first,
                  **_sums(min(float(s) * used / hours[first], 1.0), hours[first], power))
        for card, s in zip(cards, share, strict=True)
        for first, used in months.items()
    )  # fmt: skip


def _sums(use: float, hours: float, power: float) -> dict[str, Any]:
    return {
        "hours": hours, "utilization_hours": hours, "utilization_sum": use * hours, "sm_hours": hours,
        "sm_sum": 0.7 * use * hours, "tensor_hours": 0.0, "tensor_sum": 0.0, "memory_hours": hours,
        "memory_sum": (0.35 + 0.5 * use) * hours, "power_hours": hours, "energy_kwh": power * hours / 1000,
    }  # fmt: skip


def _jobs(
    source: TelemetrySource, team: Team, accelerator: str, level: float, today: date, org: Organisation,
    random: np.random.Generator,
) -> None:  # fmt: skip
    typical = 30 * 3600 if level > 0.7 else 1200  # a full pool makes people wait
    runs = []
    for n in range(240):
        asked = datetime.combine(today - timedelta(days=1 + n // 2), time(10), tzinfo=org.zone)
        waited = float(random.lognormal(np.log(typical / 2), 0.9))
        runs.append(
            JobRun(source=source, job=f"{team.slug}-{accelerator}-{n}", team=team, state="COMPLETED",
                   submitted_at=asked, started_at=asked + timedelta(seconds=waited),
                   ended_at=asked + timedelta(seconds=waited + 7200), waited_seconds=waited, cards=8,
                   interrupted=bool(n % 40 == 7))
        )  # fmt: skip
    JobRun.objects.bulk_create(runs)


def _outcomes(today: date, org: Organisation, random: np.random.Generator) -> None:
    MeasuredOutcome.objects.bulk_create(
        MeasuredOutcome(
            reference=f"demo run {n}", kind=OutcomeKind.SPEED, accelerator_slug=POOLS[n % 2][1], work="training",
            unit="tokens/s", estimated=estimated, low=0.8 * estimated, high=1.2 * estimated,
            measured=estimated * float(np.exp(random.normal(-0.1, 0.08))),
            measured_at=datetime.combine(today - timedelta(days=4 * n + 1), time(12), tzinfo=org.zone),
        )
        for n in range(36)
        for estimated in [float(random.uniform(2e5, 8e5))]
    )  # fmt: skip
