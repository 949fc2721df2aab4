"""The home page looks into every app, so it lives above them."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from config.home import sections
from core.http import SignedInRequest
from planning import policies


@require_safe
def home(request: SignedInRequest) -> HttpResponse:
    """What waits for this person."""
    context = {
        "sections": sections(request.user),
        "may_create": policies.can_create_anywhere(request.user),
    }
    return render(request, "core/home.html", context)
