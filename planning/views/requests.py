"""Pages of capacity requests: list, one request, the steps on it."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from core.audit import trail
from core.http import SignedInRequest
from planning.models import CapacityRequest


@require_safe
def request_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One request: what is asked, the plan, the approvals, the money, what happened."""
    found = get_object_or_404(
        CapacityRequest.objects.visible_to(request.user).with_current(), pk=pk
    )
    return render(
        request, "planning/request_detail.html", {"capacity_request": found, "trail": trail(found)}
    )
