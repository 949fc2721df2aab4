"""The thread of a request."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from core.audit import trail
from core.http import SignedInRequest
from planning.models import CapacityRequest
from planning.selectors.origins import origins
from procurement.selectors.thread import request_thread


@require_safe
def thread(request: SignedInRequest, pk: int) -> HttpResponse:
    """One request from need to accepted GPU-hours."""
    found = get_object_or_404(
        CapacityRequest.objects.visible_to(request.user).with_current(), pk=pk
    )
    thread_ = request_thread(found, request.user)
    context = {
        "capacity_request": found,
        "thread": thread_,
        "origins": origins(found, CapacityRequest.objects.visible_to(request.user)),
        "trail": trail(found)[:30],
    }
    return render(request, "procurement/thread.html", context)
