"""How busy the owned accelerators have been, as telemetry tells it."""

from __future__ import annotations

from datetime import date, timedelta

from django.db.models import Sum

from planning.models.telemetry import Ownership, PoolDay

DAYS = 91  # looked back: a quarter


def measured_utilisation(on: date) -> float | None:
    """Mean utilisation of owned cards over the quarter before `on`, by hour; None where nothing told. Share"""
    sums = PoolDay.objects.filter(day__gte=on - timedelta(days=DAYS), day__lt=on).exclude(
        ownership=Ownership.CLOUD
    ).aggregate(busy=Sum("utilization_sum"), hours=Sum("utilization_hours"))  # fmt: skip
    if not sums["hours"]:
        return None
    return round(min(float(sums["busy"]) / float(sums["hours"]), 1.0), 2)
