"""Action items, teams' plans, and the meeting's day and invitation."""

from __future__ import annotations

from collections.abc import Callable

from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.audit import trail
from core.errors import DomainError
from core.forms import refuse
from core.http import SignedInRequest
from core.models import Team
from core.organisation import organisation
from planning.forms.review_work import (
    ActionForm,
    CancelForm,
    EndForm,
    MeetingForm,
    MoveForm,
    PlanForm,
)
from planning.models.review_work import TeamPlan
from planning.models.reviews import CapacityReview
from planning.review_policies import can_see_reviews
from planning.review_use import pool_choices
from planning.selectors.review_work import busy_cards, recommendations
from planning.selectors.reviews import visible_reviews
from planning.services import review_meeting, review_work
from planning.services.reviews import readers
from planning.views.follow_ups import seen_action, shown_decisions


def _invalid(request: SignedInRequest, review: CapacityReview, form: object) -> HttpResponse:
    context = {"review": review, "form": form, "action": request.path}
    return render(request, "planning/review_work_form.html", context, status=422)


@require_POST
def action_add(request: SignedInRequest, pk: int) -> HttpResponse:
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    form = ActionForm(request.POST, pools=pool_choices(recommendations(review)))
    if form.is_valid():
        try:
            review_work.add_action(review_id=review.pk, by=request.user, **form.cleaned_data)
        except DomainError as error:
            if error.status != 422:
                raise
            refuse(form, error)
        else:
            return redirect(review)
    return _invalid(request, review, form)


@require_safe
def action_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One decision: what it became, and what its owner may do now."""
    action = seen_action(request, pk)
    context = {
        "decision": action,
        "actions": shown_decisions(request.user, [action]),
        "may_see_review": can_see_reviews(request.user),
        "trail": trail(action)[:30],
    }
    return render(request, "planning/review_action.html", context)


@require_POST
def action_end(request: SignedInRequest, pk: int) -> HttpResponse:
    action = seen_action(request, pk)
    form = EndForm(request.POST)
    form.is_valid()
    data = form.cleaned_data
    review_work.end_action(
        action_id=action.pk, done=bool(data.get("done")), outcome=data.get("outcome", ""),
        reference=data.get("reference", ""), by=request.user, seen_version=data.get("version"),
    )  # fmt: skip
    return redirect(action)


@require_http_methods(["GET", "HEAD", "POST"])
def team_plan(request: SignedInRequest, pk: int, slug: str) -> HttpResponse:
    """The team's form, with its last plan beside what happened. For the team's people."""
    team = get_object_or_404(Team, slug=slug, active=True)
    if not review_work.may_plan(request.user, team):
        raise Http404
    review = get_object_or_404(CapacityReview.objects.select_related("team"), pk=pk)
    if review.team_id not in (None, team.pk):
        raise Http404
    told = TeamPlan.objects.filter(review=review, team=team).first()
    start = {"cards": told.cards, "text": told.text, "version": told.version} if told else None
    form = PlanForm(request.POST or None, initial=start)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        review_work.tell_plan(
            review_id=review.pk, team=team, cards=data["cards"], text=data["text"],
            by=request.user, seen_version=data["version"],
        )  # fmt: skip
        return redirect("team-plan", review.pk, team.slug)
    before = review.period.previous()
    last = TeamPlan.objects.filter(
        team=team,
        review__fiscal_year=before.year,
        review__quarter=before.q,
        review__team=review.team_id,
    ).first()
    happened = busy_cards(team, review.period, organisation())
    context = {
        "review": review, "team": team, "form": form, "told": told,
        "facts": [
            (_("Your last plan"), number_format(last.cards, 1) if last else "–", last.text if last else ""),
            (_("Busy cards, measured"), "–" if happened is None else number_format(happened, 1), str(review)),
        ],
    }  # fmt: skip
    status = 422 if request.method == "POST" else 200
    return render(request, "planning/team_plan.html", context, status=status)


def _changed(
    request: SignedInRequest, review: CapacityReview, form: Form, change: Callable[..., object]
) -> HttpResponse:
    """Do what the form says, or show it with what is wrong."""
    if form.is_valid():
        values = dict(form.cleaned_data)
        version = values.pop("version")
        try:
            change(review_id=review.pk, by=request.user, seen_version=version, **values)
        except DomainError as error:
            if error.status != 422:
                raise
            refuse(form, error)
        else:
            return redirect(review)
    return _invalid(request, review, form)


@require_POST
def review_move(request: SignedInRequest, pk: int) -> HttpResponse:
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    return _changed(request, review, MoveForm(request.POST), review_meeting.move_meeting)


@require_POST
def review_cancel(request: SignedInRequest, pk: int) -> HttpResponse:
    """Call the meeting off."""
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    return _changed(request, review, CancelForm(request.POST), review_meeting.cancel_meeting)


@require_POST
def review_meeting_plan(request: SignedInRequest, pk: int) -> HttpResponse:
    """People and agenda."""
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    form = MeetingForm(request.POST, people=readers())
    return _changed(request, review, form, review_meeting.plan_meeting)


@require_safe
def review_invitation(request: SignedInRequest, pk: int) -> HttpResponse:
    """The meeting as a calendar file."""
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    return HttpResponse(
        review_meeting.calendar(review),
        content_type="text/calendar; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="capacity-review-{review.code}.ics"'
        },
    )
