"""The live page of a delivery's burn-in: what each card shows now, and how long it still takes."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.errors import DomainError
from core.http import SignedInRequest
from core.refused import say_refusal
from procurement import policies
from procurement.selectors.live import live_board
from procurement.services.live import issue_feed_token
from procurement.views.burn_in import the_delivery

CARDS_SHOWN = 64  # on one page: those to look at come first, and a page stays small with 1,024


@require_safe
def delivery_live(request: SignedInRequest, pk: int) -> HttpResponse:
    """All cards that burn in; htmx fetches the table anew every ten seconds."""
    return _page(request, pk)


@require_POST
def feed_token(request: SignedInRequest, pk: int) -> HttpResponse:
    """A new token, shown once on the page that answers."""
    the_delivery(request, pk)
    text = request.POST.get("interval_seconds", "30")
    try:
        token = issue_feed_token(
            delivery_id=pk,
            by=request.user,
            interval_seconds=int(text) if text.isdecimal() and len(text) < 6 else 0,
        )
    except DomainError as error:
        if error.status == 403:
            raise
        say_refusal(request, error)
        return redirect("delivery-live", pk=pk)
    return _page(request, pk, token=token)


def _page(request: SignedInRequest, pk: int, token: str = "") -> HttpResponse:
    delivery = the_delivery(request, pk)
    board = live_board(delivery, timezone.now())
    page = Paginator(board.rows, CARDS_SHOWN).get_page(request.GET.get("page"))
    context = {
        "delivery": delivery,
        "board": board,
        "page": page,
        "tiles": [
            (_("Running"), board.count("running"), ""),
            (_("With problems"), board.count("problem"), "bad" if board.count("problem") else ""),
            (_("Silent"), board.count("silent"), "bad" if board.count("silent") else ""),
            (_("Hours complete"), board.count("sealed"), ""),
            (_("Unlike the batch"), board.strange, "warn" if board.strange else ""),
            (_("Breaks"), board.restarts, "warn" if board.restarts else ""),
        ],
        "hours_left": board.remaining.total_seconds() / 3600 if board.remaining else None,
        "may_work": policies.can(request.user, "start_burn_in", delivery),
        "token": token,
        "push_url": request.build_absolute_uri(reverse("api-live-push")),
    }
    if request.htmx and not request.htmx.boosted and not token:
        return render(request, "procurement/live.html#cards", context)
    return render(request, "procurement/live.html", context)
