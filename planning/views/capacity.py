"""The capacity calendar and the bookings on it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.reference import accelerator_label
from core.charts import lines
from core.charts.drawing import Chart
from core.errors import InputError
from core.http import SignedInRequest
from core.organisation import today
from core.refused import say_errors, say_refusal
from planning import policies
from planning.capacity import Pool
from planning.forms.capacity import BookForm
from planning.models import Allocation
from planning.selectors.capacity import calendar
from planning.services import allocations
from planning.views.requests import seen_version, visible

PAGE = 50


@require_safe
def capacity_calendar(request: SignedInRequest) -> HttpResponse:
    """Where the constraint is before it hurts."""
    found = calendar(request.user, place=request.GET.get("place"))
    rows = (
        Allocation.objects.visible_to(request.user)
        .standing()
        .filter(last_day__gte=today())
        .select_related("pool", "request__team", "team")
        .order_by("last_day", "pk")
    )
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    context = {
        "calendar": found,
        "places": [
            (place, [(accelerator_label(slug), short) for slug, short in place.short])
            for place in found.places
        ],
        "pools": [(pool, _chart(pool, found.whole)) for pool in found.pools],
        "page": page,
        "rows": [
            {
                "row": row,
                "may_move": policies.can_allocate(request.user),
                "may_release": policies.can_release(request.user, row.request),
                "may_renew": policies.can_copy(request.user, row.request),
            }
            for row in page
        ],
    }
    return render(request, "planning/capacity.html", context)


def _chart(pool: Pool, whole: bool) -> Chart:
    rows: list[Any] = []
    for month in pool.months:
        label = f"{month.first:%Y-%m}"
        if whole:
            rows.append((label, _("There, after the maintenance buffer"), month.usable, None, None))
        rows.append((label, _("Wanted, highest day"), round(month.peak, 1), None, None))
        rows.append((label, _("Wanted, mean"), round(month.mean, 1), None, None))
    return lines(
        title=accelerator_label(pool.accelerator),
        labels=(_("Month"), _("What"), _("Cards")),
        rows=rows,
    )


def _allocation(request: SignedInRequest, pk: int) -> Allocation:
    return get_object_or_404(Allocation.objects.visible_to(request.user), pk=pk)


@require_POST
def allocation_book(request: SignedInRequest, pk: int) -> HttpResponse:
    """Book cards for a request."""
    found = visible(request, pk)
    form = BookForm(request.POST)
    if not form.is_valid():
        say_errors(request, form)
        return redirect(found)
    try:
        allocations.book(request_id=pk, by=request.user, **form.cleaned_data)
    except InputError as error:
        say_refusal(request, error)
    else:
        messages.success(request, _("The cards are booked."))
    return redirect(found)


@require_POST
def allocation_move(request: SignedInRequest, pk: int) -> HttpResponse:
    """Other days or another number of cards."""
    _allocation(request, pk)
    form = BookForm(request.POST)
    if not form.is_valid():
        say_errors(request, form)
        return redirect("capacity")
    try:
        allocations.move_allocation(
            allocation_id=pk, by=request.user, version=seen_version(request), **form.cleaned_data
        )
    except InputError as error:
        say_refusal(request, error)
    else:
        messages.success(request, _("The booking was moved."))
    return redirect("capacity")


@require_POST
def allocation_release(request: SignedInRequest, pk: int) -> HttpResponse:
    _allocation(request, pk)
    allocations.release_allocation(allocation_id=pk, by=request.user, version=seen_version(request))
    messages.success(request, _("The cards were released."))
    return redirect("capacity")


@require_POST
def allocation_renew(request: SignedInRequest, pk: int) -> HttpResponse:
    """A draft for the time after."""
    _allocation(request, pk)
    draft = allocations.renew(allocation_id=pk, by=request.user)
    messages.success(request, _("This draft asks for the same again. Check it, then submit."))
    return redirect("request-edit", pk=draft.pk)
