"""Acceptance: proposed unit by unit, signed by a second person, and the certificate."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe

from core.audit import trail
from core.errors import DomainError
from core.files import download_made
from core.forms import refuse
from core.http import SignedInRequest
from procurement import policies
from procurement.forms.proving import ProposeForm
from procurement.models import Acceptance, EvidenceFile
from procurement.models.evidence import VerdictChoice
from procurement.selectors.burn_in import burn_in_board
from procurement.services import acceptance as service
from procurement.states import GONE_ASSET, AssetStatus
from procurement.views.burn_in import promised_context, the_delivery
from procurement.views.common import buttons, visible
from procurement.waiting import next_people


def acceptance_propose(request: SignedInRequest, pk: int) -> HttpResponse:
    """Every unit of the delivery that is not decided yet: proposed, or left out with its reason."""
    delivery = the_delivery(request, pk)
    policies.require_action(request.user, "propose_acceptance", delivery)
    board = burn_in_board(delivery)
    units = [
        row
        for row in board.rows
        if row.asset.status not in GONE_ASSET and row.asset.status != AssetStatus.IN_SERVICE
    ]
    form = ProposeForm(request.POST or None, units=units)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = service.propose_acceptance(
                    delivery_id=pk, by=request.user, **form.service_arguments()
                )
            except DomainError as error:
                if error.status == 403:
                    raise
                refuse(form, error)
            else:
                return redirect(made)
    context = {
        "delivery": delivery,
        "form": form,
        "passed": sum(row.asset.status == AssetStatus.BURNED_IN for row in units),
    }
    return render(request, "procurement/acceptance_propose.html", context, status=status)


@require_safe
def acceptance_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """The proposal, or the certificate once it is signed."""
    acceptance = visible(
        request.user, "acceptance", pk,
        Acceptance.objects.select_related("delivery__order__vendor", "delivery__vendor", "proposed_by", "decided_by"),
    )  # fmt: skip
    files = EvidenceFile.objects.defer("result").in_bulk(
        [row["id"] for row in acceptance.evidence_index]
    )
    units = list(acceptance.units.select_related("asset", "run__operator"))
    context = {
        "acceptance": acceptance,
        "included": [unit for unit in units if unit.included],
        "excluded": [unit for unit in units if not unit.included],
        "index": [
            {
                **row,
                "verdict_label": VerdictChoice(row["verdict"]).label if row["verdict"] else "",
                "altered": files[row["id"]].altered_at is not None,
                "flags": files[row["id"]].flags,
            }
            for row in acceptance.evidence_index
        ],
        "certificates": acceptance.certificates.select_related("file", "job"),
        "next": next_people(acceptance),
        **promised_context(
            request,
            acceptance.delivery,
            [pk for u in units if u.included for pk in (u.asset_id, u.asset.parent_id) if pk],
        ),
        "steps": buttons(request.user, "acceptance", acceptance),
        "trail": trail(acceptance)[:40],
    }
    return render(request, "procurement/acceptance_detail.html", context)


@require_safe
def certificate_file(request: SignedInRequest, pk: int, language: str) -> HttpResponseBase:
    """The signed certificate in one language."""
    acceptance = visible(request.user, "acceptance", pk)
    row = get_object_or_404(acceptance.certificates.select_related("file"), language=language)
    return download_made(row.file)
