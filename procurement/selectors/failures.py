"""Failure statistics of the units a reader sees: by model and by batch, and how long vendors take for returns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from procurement.failure_rates import (
    PLANNED_PER_YEAR,
    Interval,
    TurnAround,
    rate_interval,
    share_interval,
    turn_around,
)
from procurement.models import Asset, Rma
from procurement.models.assets import AssetKind
from procurement.states import OPEN_RMA, AssetStatus, RmaStatus

YEAR_SECONDS = 365.25 * 86400
DAY_SECONDS = 86400


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Units of one model or batch. `share` is of units that ever failed; `rate` is of failures in service."""

    name: str
    note: str
    units: int
    failed_at_burn_in: int
    failed_in_service: int
    unit_years: float
    share: Interval | None
    rate: Interval | None

    @property
    def against_plan(self) -> str:
        """Whether the planning assumption of 10 % a year lies within, below or above what is shown."""
        if self.rate is None:
            return ""
        if self.rate.holds(PLANNED_PER_YEAR):
            return "agrees"
        return "better" if self.rate.high < PLANNED_PER_YEAR else "worse"


@dataclass(frozen=True, slots=True)
class VendorRow:
    name: str
    days: TurnAround


@dataclass(frozen=True, slots=True)
class FailureBoard:
    models: list[FailureRow]
    batches: list[FailureRow]
    vendors: list[VendorRow]


def failure_board(assets: Any, rmas: Any, now: datetime) -> FailureBoard:
    """Three tables in two queries. `assets` and `rmas` are what the reader may see."""
    rows = list(
        assets.filter(kind=AssetKind.ACCELERATOR)
        .exclude(status=AssetStatus.VOIDED)
        .select_related("receipt_line__delivery__vendor")
        .only(
            "pk", "model", "in_service_at", "out_of_service_at", "status",
            "receipt_line__delivery__note_number", "receipt_line__delivery__vendor__name",
        )
    )  # fmt: skip
    claims = list(
        rmas.exclude(status=RmaStatus.WITHDRAWN).select_related("vendor").only(
            "asset_id", "basis", "filed_at", "resolved_at", "created_at", "status", "fault_on",
            "vendor__name", "outcome",
        )
    )  # fmt: skip
    of_asset: dict[int, list[Rma]] = defaultdict(list)
    for claim in claims:
        if claim.outcome != "no_fault":  # the vendor found nothing
            of_asset[claim.asset_id].append(claim)
    models: dict[tuple[str, str], list[Asset]] = defaultdict(list)
    batches: dict[tuple[str, str], list[Asset]] = defaultdict(list)
    for asset in rows:
        models[asset.model, ""].append(asset)
        if asset.receipt_line is not None:
            delivery = asset.receipt_line.delivery
            batches[f"{delivery.note_number} · {asset.model}", delivery.vendor.name].append(asset)
    return FailureBoard(
        models=[_row(key, units, of_asset, now) for key, units in sorted(models.items())],
        batches=[_row(key, units, of_asset, now) for key, units in sorted(batches.items())],
        vendors=_vendors(claims, now),
    )


def _row(
    key: tuple[str, str], units: list[Asset], of_asset: dict[int, list[Rma]], now: datetime
) -> FailureRow:
    early = late = failed = 0
    years = 0.0
    for asset in units:
        found = of_asset.get(asset.pk, [])
        failed += bool(found)
        for claim in found:
            served = asset.in_service_at is not None and claim.created_at >= asset.in_service_at
            late += served
            early += not served
        if asset.in_service_at is not None:
            end = asset.out_of_service_at or now
            years += max(0.0, (end - asset.in_service_at).total_seconds()) / YEAR_SECONDS
    return FailureRow(
        name=key[0],
        note=key[1],
        units=len(units),
        failed_at_burn_in=early,
        failed_in_service=late,
        unit_years=years,
        share=share_interval(failed, len(units)),
        rate=rate_interval(late, years),
    )


def _vendors(claims: list[Rma], now: datetime) -> list[VendorRow]:
    done: dict[str, list[float]] = defaultdict(list)
    waits: dict[str, list[float]] = defaultdict(list)
    for claim in claims:
        if claim.filed_at is None:
            continue
        if claim.resolved_at is not None:
            done[claim.vendor.name].append(
                (claim.resolved_at - claim.filed_at).total_seconds() / DAY_SECONDS
            )
        elif claim.status in OPEN_RMA:
            waits[claim.vendor.name].append((now - claim.filed_at).total_seconds() / DAY_SECONDS)
    return [
        VendorRow(name, turn_around(done[name], waits[name])) for name in sorted({*done, *waits})
    ]
