"""Evidence files: uploaded, read in the background, shown with what they prove, downloaded as they are."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import DomainError
from core.files import download, safe_name
from core.http import SignedInRequest
from core.once import repeatable
from core.refused import say_errors
from procurement import policies
from procurement.forms.uploads import EvidenceForm
from procurement.models import Asset, EvidenceFile
from procurement.models.assets import AssetKind
from procurement.services import evidence
from procurement.services.evidence_checks import is_unaltered
from procurement.views.burn_in import the_delivery


@repeatable  # the same file of a delivery is kept once, and a log may have hundreds of megabytes
@require_POST
def evidence_upload(request: SignedInRequest, pk: int) -> HttpResponse:
    """Keep several files. Each stands for itself: what is refused is named with its reason, the others are kept."""
    delivery = the_delivery(request, pk)
    policies.require_action(request.user, "upload_evidence", delivery)
    nodes = Asset.objects.filter(receipt_line__delivery=delivery, kind=AssetKind.NODE)
    form = EvidenceForm(request.POST, request.FILES, nodes=nodes)
    if not form.is_valid():
        say_errors(request, form)
        return redirect(_back(request, pk))
    kept = []
    for upload in form.cleaned_data["uploads"]:
        try:
            kept.append(_keep(request, pk, upload, form.cleaned_data.get("node")))
        except DomainError as error:
            if error.status == 403:
                raise
            messages.error(
                request,
                _("%(name)s was not kept. %(why)s")
                % {"name": safe_name(upload.name or "?")[-80:], "why": error.message.render(_)},
            )
    if kept:
        text = ngettext("%(n)s file is kept.", "%(n)s files are kept.", len(kept))
        messages.success(request, text % {"n": len(kept)})
    return redirect(_back(request, pk))


def _keep(request: SignedInRequest, pk: int, upload: Any, node: Asset | None) -> EvidenceFile:
    return evidence.upload_evidence(
        delivery_id=pk, upload=upload, by=request.user, node_id=node.pk if node else None
    )


def _back(request: SignedInRequest, pk: int) -> str:
    """The page the upload came from, when it is one of ours."""
    path = request.POST.get("next", "")
    if path and url_has_allowed_host_and_scheme(path, allowed_hosts=None):
        return path
    return reverse("delivery-burn-in", args=[pk])


def the_evidence(request: SignedInRequest, pk: int) -> EvidenceFile:
    """The file, or 404 for other teams."""
    return get_object_or_404(
        EvidenceFile.objects.visible_to(request.user).select_related(
            "file", "job", "delivery__vendor", "node", "created_by"
        ),
        pk=pk,
    )


@require_safe
def evidence_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """What the reader found, per unit, with rule, value, limit and place in the file."""
    found = the_evidence(request, pk)
    context = {
        "evidence": found,
        "intact": found.altered_at is None and is_unaltered(found),
        "verdicts": found.verdicts.select_related("asset"),
        "result": found.result or {},
        "trail": trail(found)[:40],
    }
    return render(request, "procurement/evidence_detail.html", context)


@require_safe
def evidence_file(request: SignedInRequest, pk: int) -> HttpResponseBase:
    """The bytes as they were uploaded."""
    return download(the_evidence(request, pk).file)
