"""Burn-in runs: started from a pinned checklist, fed by evidence, passed only when nothing is open.

What evidence says is in `run_proof`, what people say in `run_items`; both are reached from here too.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import User
from procurement.models import Asset, BurnInRun, Delivery, PurchasingPolicy, RunItem
from procurement.models.burn_in import DecidedBy
from procurement.services.assets import install_assets
from procurement.services.checklists import load_checklists, template_for
from procurement.services.moves import move, need_reason
from procurement.services.rmas import resolve_by_burn_in
from procurement.services.run_items import decide_item, decide_items, waive_item
from procurement.services.run_proof import (
    OPEN_RUN,
    NotProven,
    Promised,
    fail,
    failure_words,
    lock_delivery,
    open_points,
    refresh_run,
    take_run,
    verdicts_of,
)
from procurement.states import AssetStatus, BurnInStatus

__all__ = [
    "OPEN_RUN", "NotProven", "abandon_run", "complete_ready", "complete_run", "decide_item", "decide_items", "fail_run",
    "interrupt_run", "load_checklists", "open_points", "resume_run", "start_burn_in", "verdicts_of", "waive_item",
]  # fmt: skip


@transaction.atomic
def start_burn_in(
    *,
    delivery_id: int,
    by: User,
    asset_ids: Sequence[int] = (),
    site: str = "",
    rack: str = "",
) -> list[BurnInRun]:
    """Start a run for each chosen unit of a delivery (none chosen: all that have no run and are not gone).

    Units not yet installed are installed first, at `site`. Raises InvalidTransition when one is not in a state to
    burn in, InputError when a unit is of another delivery.
    """
    delivery = lock_delivery(delivery_id, action="start_burn_in", by=by)
    rows = (
        Asset.objects.select_for_update(of=("self",))
        .filter(receipt_line__delivery=delivery)
        .select_related("request")
        .order_by("pk")
    )
    if asset_ids:
        assets = list(rows.filter(pk__in=asset_ids))
        if len(assets) != len(set(asset_ids)):
            raise InputError("asset_ids", msg("A unit is not of this delivery"))
    else:
        assets = [
            asset
            for asset in rows
            if asset.status in (AssetStatus.RECEIVED, AssetStatus.INSTALLED)
            and not asset.runs.filter(status__in=OPEN_RUN).exists()
        ]
    if not assets:
        raise InvalidTransition(msg("No unit of this delivery waits for a burn-in"))
    waiting = [asset.pk for asset in assets if asset.status == AssetStatus.RECEIVED]
    if waiting:
        install_assets(asset_ids=waiting, site=site, rack=rack, by=by)
        for asset in assets:
            asset.refresh_from_db(fields=["status", "version"])
    promised = Promised()
    return [_start(asset, delivery, promised, by=by) for asset in assets]


def hours_of(delivery: Delivery) -> int:
    """Hours of burn-in as the order bound them; what is asked for today where it binds none. [h]"""
    return delivery.order.burn_in_hours or PurchasingPolicy.current().burn_in_hours


def _start(asset: Asset, delivery: Delivery, promised: Promised, *, by: User) -> BurnInRun:
    if asset.status != AssetStatus.INSTALLED:
        raise InvalidTransition(
            msg("%(serial)s is not installed: it cannot burn in", serial=asset.serial)
        )
    if asset.runs.filter(status__in=OPEN_RUN).exists():
        raise InvalidTransition(msg("%(serial)s is burning in already", serial=asset.serial))
    template = template_for(asset.kind, delivery.order)
    items = list(template.items.all())
    timed = any(item.decided_by == DecidedBy.DURATION for item in items)
    attempt = asset.runs.aggregate(last=Max("attempt"))["last"] or 0
    run = BurnInRun.objects.create(
        asset=asset,
        delivery=delivery,
        template=template,
        attempt=attempt + 1,
        operator=by,
        created_by=by,
        required_seconds=hours_of(delivery) * 3600 if timed else 0,
    )
    RunItem.objects.bulk_create(RunItem(run=run, item=item) for item in items)
    record(
        "burn_in.started", on=run, by=by, serial=asset.serial, attempt=run.attempt,
        checklist=f"{template.slug} v{template.version}", required_seconds=run.required_seconds,
    )  # fmt: skip
    refresh_run(run, promised)
    return run


@transaction.atomic
def interrupt_run(*, run_id: int, reason: str, by: User, version: int | None = None) -> BurnInRun:
    """The load stopped (power, maintenance); a reason is kept."""
    run = take_run(run_id, action="interrupt", by=by, version=version)
    run.reason = need_reason(reason)
    run.save(update_fields=["reason"])
    move(run, BurnInStatus.INTERRUPTED, by=by, action="burn_in.interrupted", reason=run.reason)
    return run


@transaction.atomic
def resume_run(*, run_id: int, by: User, version: int | None = None) -> BurnInRun:
    """The load goes on, and the clock starts again: the hours are continuous, and evidence from before is void."""
    run = take_run(run_id, action="resume", by=by, version=version)
    run.clock_from = timezone.now()
    run.covered_seconds = 0
    run.save(update_fields=["clock_from", "covered_seconds"])
    move(run, BurnInStatus.RUNNING, by=by, action="burn_in.resumed")
    refresh_run(run)
    return run


@transaction.atomic
def complete_run(*, run_id: int, by: User, version: int | None = None) -> BurnInRun:
    """Pass the run. Raises NotProven while an item is open, evidence is inconclusive or hours are missing."""
    run = take_run(run_id, action="complete", by=by, version=version)
    if refresh_run(run):
        raise NotProven([msg("%(code)s failed", code=failure_words(run))])
    points = open_points(run)
    if points:
        raise NotProven(points)
    _pass(run, by=by)
    return run


def _pass(run: BurnInRun, *, by: User) -> None:
    run.ended_at = timezone.now()
    run.save(update_fields=["ended_at"])
    move(
        run, BurnInStatus.PASSED, by=by, action="burn_in.passed",
        covered_seconds=run.covered_seconds,
    )  # fmt: skip
    move(run.asset, AssetStatus.BURNED_IN, by=by, action="asset.burned_in", attempt=run.attempt)
    resolve_by_burn_in(run)


@transaction.atomic
def complete_ready(*, delivery_id: int, by: User) -> tuple[list[BurnInRun], int]:
    """Pass every running run of a delivery that has nothing open. Returns them, and how many are not ready."""
    lock_delivery(delivery_id, action="start_burn_in", by=by)
    runs = BurnInRun.objects.filter(delivery=delivery_id, status=BurnInStatus.RUNNING)
    passed, waiting, promised = [], 0, Promised()
    for run_id in list(runs.order_by("asset_id").values_list("pk", flat=True)):
        run = take_run(run_id, action="complete", by=by)
        if refresh_run(run, promised) or open_points(run):
            waiting += 1
            continue
        _pass(run, by=by)
        passed.append(run)
    return passed, waiting


@transaction.atomic
def fail_run(*, run_id: int, reason: str, by: User, version: int | None = None) -> BurnInRun:
    """A person saw it fail: the unit is defective, an RMA is drafted, the other units go on."""
    run = take_run(run_id, action="fail", by=by, version=version)
    fail(run, reason=need_reason(reason), by=by)
    return run


@transaction.atomic
def abandon_run(*, run_id: int, reason: str, by: User, version: int | None = None) -> BurnInRun:
    """End a run without a verdict; a new one may start."""
    run = take_run(run_id, action="abandon", by=by, version=version)
    run.reason, run.ended_at = need_reason(reason), timezone.now()
    run.save(update_fields=["reason", "ended_at"])
    move(run, BurnInStatus.ABANDONED, by=by, action="burn_in.abandoned", reason=run.reason)
    return run
