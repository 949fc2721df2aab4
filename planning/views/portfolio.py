"""All teams' requests pooled, against what is owned and idle."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.http import SignedInRequest
from core.organisation import today
from planning import portfolio_tables
from planning.selectors.placement import placed
from planning.selectors.portfolio import portfolio
from planning.services.purchase_tax import purchase_tax
from planning.services.snapshots import snapshot


@require_safe
def portfolio_page(request: SignedInRequest) -> HttpResponse:
    """The pools of the requests that the reader may see."""
    found = portfolio(request.user)
    context = {"portfolio": found, **portfolio_tables.context(found)}
    return render(request, "planning/portfolio.html", context)


@require_safe
def placement_page(request: SignedInRequest) -> HttpResponse:
    """Where the pooled requests would run cheapest."""
    context = portfolio_tables.placement_context(
        placed(request.user, snapshot(today()), purchase_tax())
    )
    return render(request, "planning/placement.html", context)
