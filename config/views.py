"""The home page looks into every app, so it lives above them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What waits for this person."""
    return render(request, "core/home.html", {})
