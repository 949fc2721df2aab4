"""Deliveries: what came, its burn-in, its evidence, its acceptance."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Prefetch
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import InputError
from core.files import download, is_intact
from core.http import SignedInRequest
from procurement import policies
from procurement.forms.fields import EvidenceForm
from procurement.models import Acceptance, Asset, BurnInRun, Delivery, EvidenceFile, RunItem
from procurement.models.assets import AssetKind
from procurement.models.burn_in import DecidedBy, ItemResult
from procurement.selectors.deliveries import packing_list_differences
from procurement.services import burn_in, evidence
from procurement.states import DeliveryStatus
from procurement.views.common import PAGE, buttons, visible


@require_safe
def delivery_list(request: SignedInRequest) -> HttpResponse:
    rows = (
        Delivery.objects.visible_to(request.user)
        .select_related("order", "vendor", "received_by")
        .annotate(units=Count("lines__assets", distinct=True))
        .order_by("-id")
    )
    state = request.GET.get("state", "")
    if state in DeliveryStatus.values:
        rows = rows.filter(status=state)
    context = {
        "page": Paginator(rows, PAGE).get_page(request.GET.get("page")),
        "state": state,
        "states": DeliveryStatus.choices,
    }
    return render(request, "procurement/delivery_list.html", context)


def _delivery(request: SignedInRequest, pk: int) -> Delivery:
    found: Delivery = visible(
        request.user,
        "delivery",
        pk,
        Delivery.objects.select_related("order", "vendor", "received_by"),
    )
    return found


@require_safe
def delivery_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    delivery = _delivery(request, pk)
    assets = list(
        Asset.objects.filter(receipt_line__delivery=delivery)
        .select_related("parent", "replaces")
        .prefetch_related("warranties")
        .order_by("serial")
    )
    context: dict[str, Any] = {
        "delivery": delivery,
        "lines": delivery.lines.select_related("order_line"),
        "announced": delivery.announced.count(),
        "differences": packing_list_differences(delivery, assets),
        "assets": assets,
        "may_receive": policies.can(request.user, "receive", delivery.order)
        and delivery.status == DeliveryStatus.EXPECTED,
        "acceptances": delivery.acceptances.select_related("proposed_by", "decided_by"),
        "steps": buttons(request.user, "delivery", delivery),
        "trail": trail(delivery)[:40],
    }
    return render(request, "procurement/delivery_detail.html", context)


@require_safe
def delivery_burn_in(request: SignedInRequest, pk: int) -> HttpResponse:
    """Every unit's run with its checklist, the evidence, and what is still open."""
    delivery = _delivery(request, pk)
    runs = list(
        BurnInRun.objects.filter(delivery=delivery)
        .select_related("asset__request", "operator", "template", "delivery__order")
        .prefetch_related(
            Prefetch(
                "items", RunItem.objects.select_related("item", "evidence__file", "decided_by")
            )
        )
        .order_by("asset__serial", "-attempt")
    )
    latest: dict[int, BurnInRun] = {}
    for run in runs:
        latest.setdefault(run.asset_id, run)
    files = list(
        delivery.evidence.select_related("file", "job", "node", "created_by").annotate(
            units=Count("verdicts")
        )
    )
    waiting = Asset.objects.filter(
        receipt_line__delivery=delivery, status__in=["received", "installed"]
    ).exclude(runs__status__in=burn_in.OPEN_RUN)
    may_work = policies.can(request.user, "start_burn_in", delivery)
    shown = list(latest.values())
    context: dict[str, Any] = {
        "delivery": delivery,
        "rows": [
            {
                "run": run,
                "items": list(run.items.all()),
                "open": sum(not item.is_settled for item in run.items.all()),
            }
            for run in shown
        ],
        "earlier": [run for run in runs if latest[run.asset_id].pk != run.pk],
        "waiting": waiting.count(),
        "files": files,
        "reading": any(file.job is not None and file.job.is_open for file in files),
        "nodes": Asset.objects.filter(receipt_line__delivery=delivery, kind=AssetKind.NODE),
        "form": EvidenceForm(),
        "may_work": may_work,
        "manual": _manual(shown),
        "results": [(ItemResult.PASS.value, _("Pass")), (ItemResult.FAIL.value, _("Fail"))],
        "steps": buttons(request.user, "delivery", delivery),
        "acceptances": delivery.acceptances.all(),
    }
    template = "procurement/burn_in.html#board" if request.htmx else "procurement/burn_in.html"
    return render(request, template, context)


def _manual(runs: list[BurnInRun]) -> list[RunItem]:
    """One row per item that people decide and that is open somewhere."""
    found: dict[str, RunItem] = {}
    for run in runs:
        if run.status not in burn_in.OPEN_RUN:
            continue
        for row in run.items.all():
            by_person = row.item.decided_by == DecidedBy.PERSON or (
                row.item.weight == "review" and row.result in (ItemResult.OPEN, ItemResult.REVIEW)
            )
            if by_person and not row.is_settled:
                found.setdefault(row.item.code, row)
    return list(found.values())


@require_POST
def burn_in_items(request: SignedInRequest, pk: int) -> HttpResponse:
    """The same finding on chosen items of all open runs (or of the chosen ones)."""
    _delivery(request, pk)
    run_ids = [int(value) for value in request.POST.getlist("runs") if value.isdecimal()]
    try:
        count = burn_in.decide_items(
            delivery_id=pk,
            codes=request.POST.getlist("codes"),
            result=request.POST.get("result", ""),
            note=request.POST.get("note", ""),
            run_ids=run_ids,
            by=request.user,
        )
    except InputError as error:
        messages.error(request, error.message.render(_))
    else:
        messages.success(request, _("%(n)s results noted.") % {"n": count})
    return redirect("delivery-burn-in", pk=pk)


@require_POST
def evidence_upload(request: SignedInRequest, pk: int) -> HttpResponse:
    _delivery(request, pk)
    node = request.POST.get("node", "")
    form = EvidenceForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, " ".join(str(e) for errors in form.errors.values() for e in errors))
        return redirect("delivery-burn-in", pk=pk)
    try:
        found = evidence.upload_evidence(
            delivery_id=pk,
            upload=form.cleaned_data["file"],
            by=request.user,
            node_id=int(node) if node.isdecimal() else None,
        )
    except InputError as error:
        messages.error(request, error.message.render(_))
        return redirect("delivery-burn-in", pk=pk)
    messages.success(request, _("%(name)s is stored and will be read.") % {"name": found.file.name})
    return redirect("delivery-burn-in", pk=pk)


@require_safe
def run_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One unit's run: each item with its value, evidence and person; what may be noted or waived."""
    run = visible(
        request.user, "burn-in", pk,
        BurnInRun.objects.select_related("asset__request", "operator", "template", "delivery__order"),
    )  # fmt: skip
    context = {
        "run": run,
        "items": run.items.select_related("item", "evidence__file", "decided_by"),
        "points": burn_in.open_points(run) if run.status in burn_in.OPEN_RUN else [],
        "verdicts": burn_in.verdicts_of(run),
        "may_decide": policies.can(request.user, "decide_item", run),
        "may_waive": policies.can(request.user, "waive_item", run),
        "steps": buttons(request.user, "burn-in", run),
        "trail": trail(run)[:60],
    }
    return render(request, "procurement/run_detail.html", context)


def _evidence(request: SignedInRequest, pk: int) -> EvidenceFile:
    return get_object_or_404(
        EvidenceFile.objects.visible_to(request.user).select_related(
            "file", "job", "delivery__vendor", "node", "created_by"
        ),
        pk=pk,
    )


@require_safe
def evidence_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """What the reader found, per unit, with rule, value, limit and place in the file."""
    found = _evidence(request, pk)
    context = {
        "evidence": found,
        "intact": is_intact(found.file),
        "verdicts": found.verdicts.select_related("asset"),
        "result": found.result or {},
        "trail": trail(found)[:40],
    }
    template = "procurement/evidence_detail.html"
    return render(request, template, context)


@require_safe
def evidence_file(request: SignedInRequest, pk: int) -> HttpResponseBase:
    return download(_evidence(request, pk).file)


@require_safe
def acceptance_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """The proposal, or the certificate once it is signed."""
    acceptance = visible(
        request.user, "acceptance", pk,
        Acceptance.objects.select_related("delivery__order__vendor", "delivery__vendor", "proposed_by", "decided_by"),
    )  # fmt: skip
    units = list(acceptance.units.select_related("asset", "run__operator"))
    context = {
        "acceptance": acceptance,
        "included": [unit for unit in units if unit.included],
        "excluded": [unit for unit in units if not unit.included],
        "steps": buttons(request.user, "acceptance", acceptance),
        "trail": trail(acceptance)[:40],
    }
    return render(request, "procurement/acceptance_detail.html", context)
