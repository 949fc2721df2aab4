"""Returns: the claim, its evidence, what came back."""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import Any

from django.core.paginator import Paginator
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import InputError
from core.http import SignedInRequest
from core.organisation import today
from core.refused import say_refusal
from core.whole import wholes
from procurement import policies
from procurement.filters import RmaFilter
from procurement.models import EvidenceFile, Rma
from procurement.services import rmas
from procurement.services.bundles import write_bundle
from procurement.states import RmaStatus
from procurement.views.common import PAGE, buttons, sees_proof, visible

WAY = (
    RmaStatus.DRAFT, RmaStatus.FILED, RmaStatus.AUTHORISED, RmaStatus.SHIPPED,
    RmaStatus.REPLACEMENT_IN, RmaStatus.RESOLVED,
)  # fmt: skip


@require_safe
def rma_list(request: SignedInRequest) -> HttpResponse:
    rows = Rma.objects.visible_to(request.user).select_related("asset", "vendor", "replacement")
    found = RmaFilter(request.GET, queryset=rows, request=request)
    context = {
        "filter": found,
        "page": Paginator(found.qs, PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "procurement/rma_list.html", context)


@require_safe
def rma_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One claim: fault, cover on the day of the fault, evidence, the vendor's answer, what came back."""
    rma = visible(
        request.user, "rma", pk,
        Rma.objects.select_related(
            "asset__request", "asset__receipt_line__delivery", "vendor", "run__asset", "replacement"
        ),
    )  # fmt: skip
    attached = list(rma.evidence.select_related("file").defer("result"))
    may_attach = policies.can(request.user, "file_rma", rma)
    receipt = rma.asset.receipt_line
    context = {
        "rma": rma,
        "sees_proof": sees_proof(request.user, rma.asset),
        "evidence": attached,
        "altered": [file for file in attached if file.altered_at],
        "available": EvidenceFile.objects.visible_to(request.user)
        .filter(delivery=receipt.delivery_id)
        .exclude(pk__in=[file.pk for file in attached])
        .select_related("file")
        .defer("result")
        if may_attach and receipt
        else [],
        "warranties": rma.asset.warranties.select_related("source__vendor"),
        "verdicts": rma.asset.verdicts.filter(evidence__in=attached).select_related(
            "evidence__file"
        ),
        "path": _path(rma),
        "steps": buttons(request.user, "rma", rma),
        "trail": trail(rma, rma.asset)[:60],
        "today": today(),
    }
    return render(request, "procurement/rma_detail.html", context)


def _path(rma: Rma) -> list[dict[str, Any]]:
    """The straight way for components/stepper.html; where the claim left it, that state is shown as failed."""
    if rma.status in (RmaStatus.DENIED, RmaStatus.WITHDRAWN):
        return [
            {"label": RmaStatus.DRAFT.label, "state": "done"},
            {"label": rma.get_status_display(), "state": "failed"},
        ]
    at = WAY.index(RmaStatus(rma.status))
    skipped = {RmaStatus.REPLACEMENT_IN} if rma.outcome and not rma.replacement_id else set()
    ended = rma.status == RmaStatus.RESOLVED
    return [
        {
            "label": state.label,
            "state": "done" if i < at or ended else "current" if i == at else "todo",
        }
        for i, state in enumerate(WAY)
        if state not in skipped
    ]


@require_POST
def rma_evidence(request: SignedInRequest, pk: int) -> HttpResponse:
    """Attach files of the unit's delivery to a draft."""
    visible(request.user, "rma", pk)
    ids = wholes(request.POST.getlist("evidence"))
    try:
        rmas.attach_evidence(rma_id=pk, evidence_ids=ids, by=request.user)
    except InputError as error:
        say_refusal(request, error)
    return redirect("rma-detail", pk=pk)


@require_safe
def rma_bundle(request: SignedInRequest, pk: int) -> HttpResponseBase:
    """Every attached file and the claim in one archive."""
    rma = visible(request.user, "rma", pk, Rma.objects.select_related("asset"))
    file = TemporaryFile()  # closed by FileResponse
    write_bundle(file, rma)
    file.seek(0)
    response = FileResponse(file, content_type="application/zip")
    response["Content-Disposition"] = (
        content_disposition_header(True, f"{rma.number}.zip") or "attachment"
    )
    response["X-Content-Type-Options"] = "nosniff"
    return response
