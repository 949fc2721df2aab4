"""Burn-in: the board of a delivery, and one unit's run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import DomainError
from core.forms import refuse
from core.http import SignedInRequest
from core.whole import wholes
from procurement import policies
from procurement.forms.fields import OptionalReasonForm
from procurement.forms.proving import FindingForm, StartForm
from procurement.forms.uploads import EvidenceForm
from procurement.models import Asset, BurnInRun, Delivery
from procurement.models.assets import AssetKind
from procurement.selectors.burn_in import burn_in_board, manual_items
from procurement.selectors.promised import promised_against_measured, rule
from procurement.services import burn_in
from procurement.services.burn_in_bulk import step_runs
from procurement.states import BurnInStatus
from procurement.views.common import buttons, visible

ON_DOCK = frozenset(
    {"turn-away", "reverse", "register-warranty"}
)  # steps of the delivery's own page


def the_delivery(request: SignedInRequest, pk: int) -> Delivery:
    """The delivery with what its pages name, or 404."""
    found: Delivery = visible(
        request.user,
        "delivery",
        pk,
        Delivery.objects.select_related("order__vendor", "vendor", "received_by"),
    )
    return found


@require_safe
def delivery_burn_in(request: SignedInRequest, pk: int) -> HttpResponse:
    """Every unit with its run, its verdict and what is open; the evidence; what may be done."""
    delivery = the_delivery(request, pk)
    if request.htmx and not request.htmx.boosted:
        context = _files(delivery)
        response = render(request, "procurement/burn_in.html#files", context)
        if not context["reading"]:
            response["HX-Refresh"] = "true"  # the files are read: states and hours have changed
        return response
    return _board(request, delivery)


def _files(delivery: Delivery) -> dict[str, Any]:
    files = list(
        delivery.evidence.select_related("file", "job", "node", "created_by")
        .defer("result")
        .annotate(units=Count("verdicts"))
        .order_by("-id")
    )
    reading = any(file.job is not None and file.job.is_open for file in files)
    return {"delivery": delivery, "files": files, "reading": reading}


def _board(
    request: SignedInRequest, delivery: Delivery, refused: dict[str, Any] | None = None
) -> HttpResponse:
    """The board; with `refused` (a bound form by its name) as it was sent, ticks and all."""
    board = burn_in_board(delivery)
    counts = board.counts
    nodes = Asset.objects.filter(receipt_line__delivery=delivery, kind=AssetKind.NODE)
    # What was typed into the other forms of the page came along: it stays, without being judged.
    typed = request.POST.dict() if refused else {}
    context = _files(delivery) | {
        "board": board,
        "tiles": [
            (_("Waiting"), counts["waiting"], ""),
            (BurnInStatus.RUNNING.label, counts["running"] + counts["interrupted"], ""),
            (BurnInStatus.PASSED.label, counts["passed"], ""),
            (BurnInStatus.FAILED.label, counts["failed"], "bad" if counts["failed"] else ""),
        ],
        "waiting": counts["waiting"],
        "open": counts["running"] + counts["interrupted"],
        "may_work": policies.can(request.user, "start_burn_in", delivery),
        "may_propose": policies.can(request.user, "propose_acceptance", delivery)
        and counts["passed"] > 0,
        "manual": manual_items(board.rows),
        "upload": EvidenceForm(nodes=nodes),
        "start": StartForm(initial=typed),
        "finding": FindingForm(initial=typed),
        "stopped": OptionalReasonForm(initial=typed),
        "ticked": _chosen(request),
        "codes": request.POST.getlist("codes"),
        "steps": [
            row
            for row in buttons(request.user, "delivery", delivery)
            if row["step"].action not in ON_DOCK
            and (board.ready or row["step"].action != "complete-ready")
        ],
        "acceptances": delivery.acceptances.all(),
        **promised_context(request, delivery),
        **(refused or {}),
    }
    return render(request, "procurement/burn_in.html", context, status=422 if refused else 200)


def promised_context(
    request: SignedInRequest, delivery: Delivery, assets: Iterable[int] | None = None
) -> dict[str, Any]:
    """What `_promised.html` shows: the amounts only to those who read the order's prices."""
    return {
        "promised": promised_against_measured(delivery, assets=assets),
        "promised_rule": rule(),
        "sees_money": policies.can_read_order_prices(request.user, delivery.order),
    }


def _chosen(request: SignedInRequest) -> list[int]:
    return wholes(request.POST.getlist("units"))


@require_POST
def burn_in_start(request: SignedInRequest, pk: int) -> HttpResponse:
    """Start the chosen units, or all that wait."""
    delivery = the_delivery(request, pk)
    form = StartForm(request.POST)
    if form.is_valid():
        try:
            runs = burn_in.start_burn_in(
                delivery_id=pk, asset_ids=_chosen(request), by=request.user, **form.cleaned_data
            )
        except DomainError as error:
            _say(form, error)
        else:
            text = ngettext("%(n)s run started.", "%(n)s runs started.", len(runs))
            messages.success(request, text % {"n": len(runs)})
            return redirect("delivery-burn-in", pk=pk)
    return _board(request, delivery, {"start": form})


@require_POST
def burn_in_items(request: SignedInRequest, pk: int) -> HttpResponse:
    """The same finding on chosen items of the chosen units, or of all that burn in."""
    delivery = the_delivery(request, pk)
    form = FindingForm(request.POST)
    codes = request.POST.getlist("codes")
    if form.is_valid() and not codes:
        form.add_error(None, _("Tick one item or more"))
    if form.is_valid():
        open_runs = BurnInRun.objects.filter(delivery=pk, status__in=burn_in.OPEN_RUN)
        chosen = _chosen(request)
        run_ids = list(open_runs.filter(asset__in=chosen).values_list("pk", flat=True))
        try:
            count = burn_in.decide_items(
                delivery_id=pk,
                codes=codes,
                run_ids=run_ids or ([0] if chosen else []),
                by=request.user,
                **form.cleaned_data,
            )
        except DomainError as error:
            _say(form, error)
        else:
            text = ngettext("%(n)s result noted.", "%(n)s results noted.", count)
            messages.success(request, text % {"n": count})
            return redirect("delivery-burn-in", pk=pk)
    return _board(request, delivery, {"finding": form})


@require_POST
def burn_in_bulk(request: SignedInRequest, pk: int, action: str) -> HttpResponse:
    """Interrupt, resume or abandon the runs of the chosen units."""
    delivery = the_delivery(request, pk)
    form = OptionalReasonForm(request.POST)
    if form.is_valid():
        try:
            runs = step_runs(
                delivery_id=pk,
                action=action,
                asset_ids=_chosen(request),
                reason=form.cleaned_data["reason"],
                by=request.user,
            )
        except DomainError as error:
            _say(form, error)
        else:
            text = ngettext("%(n)s run changed.", "%(n)s runs changed.", len(runs))
            messages.success(request, text % {"n": len(runs)})
            return redirect("delivery-burn-in", pk=pk)
    return _board(request, delivery, {"stopped": form})


def _say(form: forms.BaseForm, error: DomainError) -> None:
    """A refusal because of states or input is said in the form; one for lack of a role is a page of its own."""
    if error.status == 403:
        raise error
    refuse(form, error)


@require_safe
def run_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One unit's run: each item with its value, evidence and person; what may be noted or waived."""
    run = visible(
        request.user, "burn-in", pk,
        BurnInRun.objects.select_related("asset__request", "operator", "template", "delivery__order"),
    )  # fmt: skip
    context = {
        "run": run,
        "sees_proof": True,
        "items": run.items.select_related("item", "evidence__file", "decided_by"),
        "points": burn_in.open_points(run) if run.status in burn_in.OPEN_RUN else [],
        "verdicts": burn_in.verdicts_of(run),
        "rma": run.rmas.first(),
        "others": run.asset.runs.exclude(pk=run.pk),
        "may_decide": policies.can(request.user, "decide_item", run),
        "may_waive": policies.can(request.user, "waive_item", run),
        "steps": buttons(request.user, "burn-in", run),
        "trail": trail(run)[:60],
    }
    return render(request, "procurement/run_detail.html", context)
