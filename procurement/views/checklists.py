"""The checklists that acceptance of an order follows, and where they differ from the templates."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.http import SignedInRequest
from procurement import policies
from procurement.models import PurchaseOrder
from procurement.services.contract_checklists import contract_checklists, deviations
from procurement.views.common import visible


@require_safe
def order_checklists(request: SignedInRequest, pk: int) -> HttpResponse:
    """Each kind of unit with its items; what a draft may still change."""
    order = visible(
        request.user, "order", pk, PurchaseOrder.objects.select_related("vendor", "award")
    )
    context = {
        "order": order,
        "checklists": [(row, deviations(row)) for row in contract_checklists(order)],
        "may_edit": policies.can(request.user, "edit_checklist", order),
    }
    return render(request, "procurement/order_checklists.html", context)
