"""Outcomes recorded and matched with their estimates; versions made, put in force, and used by estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Sum
from django.utils import timezone

from core.audit import record
from core.errors import DomainError, InputError
from core.messages import msg
from core.models import Team, User
from core.policies import require
from core.transitions import lock
from planning import telemetry_policies as may
from planning.calibration.apply import as_measured, class_of
from planning.calibration.shrinkage import Outcome, calibrate
from planning.models.budgets import Bucket, LedgerEntry
from planning.models.calibration import (
    BENCHMARK,
    CalibrationVersion,
    MeasuredOutcome,
    OutcomeKind,
)
from planning.models.requests import CapacityRequest
from planning.models.telemetry import JobRun
from planning.selectors.calibration import factor_for, in_force
from planning.services.estimates import catalogue
from planning.states import RequestStatus
from planning.study.estimates import estimate
from planning.study.request import parse_request
from planning.study.search.snapshot import Snapshot

TEACHES = (OutcomeKind.SPEED, OutcomeKind.TIME)
ALIKE = 0.01
MOST = 10_000  # outcomes that a version rests on: the newest


@transaction.atomic
def record_outcome(
    *,
    by: User | None,
    reference: str,
    kind: str,
    estimated: float,
    measured: float,
    unit: str,
    measured_at: datetime,
    low: float | None = None,
    high: float | None = None,
    accelerator_slug: str = "",
    work: str = "",
    team: Team | None = None,
    request: CapacityRequest | None = None,
    factor: float = 1.0,
    vendor: str = "",
) -> MeasuredOutcome:
    """Keep one outcome; the same reference again returns the one that is there. `by` None: found by the product."""
    if by is not None:
        require(may.can_keep_sources(by))
    for name, value in (("estimated", estimated), ("measured", measured), ("factor", factor)):
        if not 0 < value < float("inf"):
            raise InputError(
                name, msg("%(field)s must be above 0", field=name), value=value, limit="> 0"
            )
    if low is not None and high is not None and not low <= high:
        raise InputError("low", msg("P10 is above P90"), value=low, limit=high)
    if kind in TEACHES and not (accelerator_slug and work):
        raise InputError(
            "accelerator_slug", msg("A speed or a time needs its accelerator and class of work")
        )
    row, new = MeasuredOutcome.objects.get_or_create(
        reference=reference[:120],
        defaults={
            "kind": kind, "accelerator_slug": accelerator_slug, "work": work, "team": team, "request": request,
            "unit": unit[:16], "estimated": estimated, "low": low, "high": high, "measured": measured,
            "factor": factor, "vendor": vendor, "measured_at": measured_at, "recorded_by": by,
        },
    )  # fmt: skip
    if new:
        record("outcome.recorded", on=row, by=by, team=team, measured=measured, estimated=estimated)
    return row


@dataclass(frozen=True, slots=True)
class AcceptanceBenchmark:
    """A benchmark as an acceptance showed it, beside what had been promised: values only, from the app above."""

    reference: str  # names it once and for all
    accelerator_slug: str
    promised: float
    measured: float
    tolerance: float  # share within which the promise counts as kept [1]
    unit: str
    measured_at: datetime
    vendor: str = ""


def record_benchmark(found: AcceptanceBenchmark) -> MeasuredOutcome:
    """Keep a benchmark at acceptance as an outcome. Safe to repeat.

    The plan rested on the promise, so it is the estimate. It has a class of work of its own: a benchmark teaches no
    workload's cell, only what all machines of the organisation share.
    """
    return record_outcome(
        by=None, reference=found.reference, kind=OutcomeKind.SPEED, estimated=found.promised,
        low=found.promised * (1 - found.tolerance), high=found.promised * (1 + found.tolerance),
        measured=found.measured, unit=found.unit, measured_at=found.measured_at,
        accelerator_slug=found.accelerator_slug, work=BENCHMARK, vendor=found.vendor[:200],
    )  # fmt: skip


def withdraw_benchmark(reference: str, *, reason: str) -> bool:
    """Keep a benchmark from teaching because its evidence fell; `reason` names the evidence. False: none teaches."""
    row = (
        MeasuredOutcome.objects.select_for_update()
        .filter(reference=reference[:120], left_out="")
        .first()
    )
    if row is None:
        return False
    row.left_out = reason[:300]
    row.save(update_fields=["left_out"])
    record("outcome.left_out", on=row, by=None, team=row.team, reason=row.left_out)
    return True


@transaction.atomic
def leave_out(*, outcome_id: int, reason: str, by: User) -> MeasuredOutcome:
    """Keep an outcome from teaching, with a reason; an empty reason takes it in again."""
    require(may.can_keep_sources(by))
    row = lock(MeasuredOutcome.objects.all(), outcome_id)
    row.left_out = reason.strip()[:300]
    row.save(update_fields=["left_out"])
    action = "outcome.left_out" if row.left_out else "outcome.taken_in"
    record(action, on=row, by=by, team=row.team, reason=row.left_out)
    return row


def match_runs() -> int:
    """Hold finished jobs that report tokens against the estimate of their model. Safe to repeat."""
    known = {
        reference.removeprefix("run:")
        for reference in MeasuredOutcome.objects.filter(reference__startswith="run:").values_list(
            "reference", flat=True
        )
    }
    runs = (
        JobRun.objects.filter(tokens__gt=0, cards__gt=0, ended_at__isnull=False, started_at__isnull=False)
        .exclude(model_slug="")
        .exclude(source__accelerator_slug="")
        .select_related("source", "team")
    )  # fmt: skip
    count = 0
    for run in runs:
        if str(run.pk) in known or run.started_at is None or run.ended_at is None:
            continue
        seconds = (run.ended_at - run.started_at).total_seconds()
        if seconds <= 0 or not run.tokens:
            continue
        asked = {
            "kind": "pretraining", "model": run.model_slug, "tokens": str(int(run.tokens)),
            "accelerator": run.source.accelerator_slug, "accelerators": run.cards,
        }  # fmt: skip
        try:
            band = (
                estimate(parse_request(asked), catalogue())
                .estimates[0]
                .estimate.figures["throughput"]
            )
        except DomainError:
            continue  # a model the estimators do not know, or one that does not fit: nothing to hold it against
        record_outcome(
            by=None, reference=f"run:{run.pk}", kind=OutcomeKind.SPEED, unit=band.unit,
            estimated=band.p50, low=band.p10, high=band.p90, measured=run.tokens / seconds,
            measured_at=run.ended_at, accelerator_slug=run.source.accelerator_slug,
            work=class_of("pretraining"), team=run.team,
        )  # fmt: skip
        count += 1
    return count


def _part(accepted: int | None, planned: int) -> float:
    return 1.0 if accepted is None else min(accepted / planned, 1.0)


def match_costs() -> int:
    """Hold what fulfilled requests cost against their plan, for the cards that were accepted: one that was closed short
    was not cheaper than planned. A plan's cost has no band of its own."""
    done = CapacityRequest.objects.filter(status=RequestStatus.FULFILLED).with_current()
    spent = dict(
        LedgerEntry.objects.filter(request__in=done, bucket=Bucket.ACTUAL)
        .order_by()
        .values_list("request")
        .annotate(total=Sum("original_amount"))
    )
    count = 0
    for request in done.select_related("team"):
        plan = getattr(request.current, "plan", None)
        amount = spent.get(request.pk)
        reference = f"cost:{request.pk}:{request.revision_number}"
        if plan is None or not amount or amount <= 0 or plan.money.amount <= 0:
            continue
        currencies = set(
            LedgerEntry.objects.filter(request=request, bucket=Bucket.ACTUAL).values_list(
                "original_currency", flat=True
            )
        )
        if (
            currencies != {plan.currency}
            or MeasuredOutcome.objects.filter(reference=reference).exists()
        ):
            continue  # sums of several currencies are no figure
        record_outcome(
            by=None, reference=reference, kind=OutcomeKind.COST, unit=plan.currency,
            estimated=float(plan.money.amount) * _part(request.accepted_cards, plan.cards), measured=float(amount),
            measured_at=timezone.now(),
            accelerator_slug=plan.accelerator_slug, work=class_of(request.kind), team=request.team, request=request,
        )  # fmt: skip
        count += 1
    return count


def learn(by: User | None = None) -> CalibrationVersion | None:
    """Match what is new and make a version when it changes the factors. None: nothing changed. Safe to repeat.

    A version that a person chose stays in force until a person learns anew or chooses another.
    """
    if by is not None:
        require(may.can_keep_sources(by))
    match_runs()
    match_costs()
    rows = list(
        MeasuredOutcome.objects.filter(kind__in=TEACHES, left_out="").order_by("-measured_at", "-pk")[:MOST]
    )  # fmt: skip
    found = calibrate(
        Outcome(row.pk, row.accelerator_slug, row.work, row.ratio, row.measured_at.timestamp())
        for row in rows
    )
    result: dict[str, Any] = {
        "cells": [
            {"accelerator": accelerator, "work": work, **factor.to_json()}
            for (accelerator, work), factor in sorted(found.cells.items())
        ],
        "elsewhere": found.elsewhere.to_json(),
        "noise": found.noise,
        "beliefs": dict(found.beliefs),
        "outliers": list(found.outliers),
        "drifting": [list(cell) for cell in found.drifting],
    }
    with transaction.atomic():
        latest = CalibrationVersion.objects.select_for_update().order_by("-number").first()
        if (latest is None and not rows) or (latest is not None and _same(latest.result, result)):
            return None
        number = (CalibrationVersion.objects.aggregate(n=Max("number"))["n"] or 0) + 1
        try:
            with transaction.atomic():
                version = CalibrationVersion.objects.create(
                    number=number, made_by=by, outcomes=len(rows), result=result
                )
        except IntegrityError:
            return None  # another worker made it at the same moment
        record("calibration.learned", on=version, by=by, outcomes=len(rows))
        standing = CalibrationVersion.objects.filter(active=True).first()
        if by is not None or standing is None or not standing.chosen:
            _put_in_force(version, chosen=False, by=by)
        return version


def _same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether estimates would move by less than ALIKE: then no version is made, and no study goes out of date."""

    def factors(result: dict[str, Any]) -> dict[tuple[str, str], float]:
        found = {(row["accelerator"], row["work"]): row["factor"] for row in result["cells"]}
        return found | {("", ""): result["elsewhere"]["factor"]}

    before, after = factors(old), factors(new)
    flags = ("outliers", "drifting")
    return (
        before.keys() == after.keys()
        and all(abs(after[cell] / before[cell] - 1) < ALIKE for cell in after)
        and all(old[name] == new[name] for name in flags)
    )


@transaction.atomic
def choose_version(*, number: int | None, by: User) -> CalibrationVersion | None:
    """Go back (or on) to a version; None: to the published efficiencies. It stays until a person says otherwise."""
    require(may.can_keep_sources(by))
    if number is None:
        standing = CalibrationVersion.objects.select_for_update().filter(active=True).first()
        if standing is not None:
            CalibrationVersion.objects.filter(pk=standing.pk).update(active=False)
            record("calibration.switched_off", on=standing, by=by)
        return None
    version = CalibrationVersion.objects.select_for_update().get(number=number)
    _put_in_force(version, chosen=True, by=by)
    return version


def _put_in_force(version: CalibrationVersion, *, chosen: bool, by: User | None) -> None:
    CalibrationVersion.objects.filter(active=True).exclude(pk=version.pk).update(active=False)
    version.active, version.chosen = True, chosen
    version.save(update_fields=["active", "chosen"])
    record("calibration.in_force", on=version, by=by)


def calibrated_market(market: Snapshot, kind: str) -> tuple[Snapshot, str]:
    """The market with accelerators as they run here, and what to write behind the version of the constants."""
    version = in_force()
    if version is None:
        return market, ""
    work = class_of(kind)
    cards = tuple(
        as_measured(card, factor_for(version, card.slug, work)) for card in market.accelerators
    )
    return replace(market, accelerators=cards), f"+c{version.number}"
