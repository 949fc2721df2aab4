"""The home page looks into every app, so it lives above them."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from config.home import sections
from core.http import SignedInRequest


@require_safe
def home(request: SignedInRequest) -> HttpResponse:
    """What waits for this person."""
    return render(request, "core/home.html", {"sections": sections(request.user)})
