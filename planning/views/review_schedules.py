"""Who holds capacity reviews, and by which fiscal calendar."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from core.audit import trail
from core.errors import DomainError
from core.forms import refuse
from core.http import SignedInRequest
from core.whole import whole
from planning.forms.month_one import NewScheduleForm, ScheduleForm
from planning.models.review_schedules import ReviewSchedule
from planning.review_policies import can_see_reviews, can_set_review_rules
from planning.services import review_schedules


@require_http_methods(["GET", "HEAD", "POST"])
def schedule_list(request: SignedInRequest) -> HttpResponse:
    """Every unit's calendar; POST adds a team's."""
    may_set = can_set_review_rules(request.user)
    if not can_see_reviews(request.user) or (request.method == "POST" and not may_set):
        raise Http404
    form = NewScheduleForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            review_schedules.add_schedule(by=request.user, **form.cleaned_data)
        except DomainError as error:
            if error.status != 422:
                raise
            refuse(form, error)
        else:
            messages.success(request, _("The schedule is kept."))
            return redirect("review-schedules")
    review_schedules.default_schedule()
    context = {
        "schedules": ReviewSchedule.objects.select_related("team"),
        "may_set": may_set,
        "form": form,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "planning/review_schedules.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def schedule_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """One unit's calendar, for those who may change it."""
    if not can_set_review_rules(request.user):
        raise Http404
    row = get_object_or_404(ReviewSchedule.objects.select_related("team"), pk=pk)
    version = row.version
    form = ScheduleForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        review_schedules.set_schedule(
            schedule_id=pk, by=request.user, seen_version=whole(request.POST.get("version", "")),
            **form.cleaned_data,
        )  # fmt: skip
        messages.success(request, _("The schedule is kept."))
        return redirect("review-schedules")
    context = {"schedule": row, "form": form, "version": version, "trail": trail(row)[:30]}
    status = 422 if request.method == "POST" else 200
    return render(request, "planning/review_schedule_edit.html", context, status=status)
