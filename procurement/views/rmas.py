"""Returns: the claim, its evidence, what came back."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.http import SignedInRequest
from procurement import policies
from procurement.models import EvidenceFile, Rma
from procurement.services import rmas
from procurement.states import RmaStatus
from procurement.views.common import PAGE, buttons, visible


@require_safe
def rma_list(request: SignedInRequest) -> HttpResponse:
    rows = Rma.objects.visible_to(request.user).select_related("asset", "vendor", "replacement")
    state = request.GET.get("state", "")
    if state in RmaStatus.values:
        rows = rows.filter(status=state)
    context = {
        "page": Paginator(rows, PAGE).get_page(request.GET.get("page")),
        "state": state,
        "states": RmaStatus.choices,
    }
    return render(request, "procurement/rma_list.html", context)


@require_safe
def rma_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    rma = visible(
        request.user, "rma", pk,
        Rma.objects.select_related("asset__request", "asset__receipt_line__delivery", "vendor", "run", "replacement"),
    )  # fmt: skip
    attached = list(rma.evidence.select_related("file"))
    context = {
        "rma": rma,
        "evidence": attached,
        "available": EvidenceFile.objects.visible_to(request.user)
        .filter(delivery=rma.asset.receipt_line.delivery_id)
        .exclude(pk__in=[file.pk for file in attached])
        .select_related("file")
        if policies.can(request.user, "file_rma", rma)
        else [],
        "steps": buttons(request.user, "rma", rma),
        "trail": trail(rma, rma.asset)[:60],
    }
    return render(request, "procurement/rma_detail.html", context)


@require_POST
def rma_evidence(request: SignedInRequest, pk: int) -> HttpResponse:
    visible(request.user, "rma", pk)
    ids = [int(value) for value in request.POST.getlist("evidence") if value.isdecimal()]
    rmas.attach_evidence(rma_id=pk, evidence_ids=ids, by=request.user)
    return redirect("rma-detail", pk=pk)
