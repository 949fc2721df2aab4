"""Looks back after four weeks: list, one, its answer; the rules."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.audit import trail
from core.http import SignedInRequest
from core.messages import Message
from core.templatetags.ui import percent, said, span
from planning import policies, trouble
from planning import telemetry_policies as may
from planning.forms.month_one import AnswerForm, RulesForm
from planning.models.month_one import MonthOneReview, QueueStatistic
from planning.review_policies import can_close_look_back
from planning.services import month_one
from planning.trouble_table import BY_KEY


@require_safe
def month_one_list(request: SignedInRequest) -> HttpResponse:
    rows = MonthOneReview.objects.visible_to(request.user).select_related("request__team", "owner")
    page = Paginator(rows, 50).get_page(request.GET.get("page"))
    return render(
        request,
        "planning/month_one_list.html",
        {"page": page, "may_set": may.can_keep_sources(request.user)},
    )


@require_safe
def month_one_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    return _shown(request, _visible(request, pk))


def _visible(request: SignedInRequest, pk: int) -> MonthOneReview:
    rows = MonthOneReview.objects.visible_to(request.user).select_related("request__team", "owner")
    return get_object_or_404(rows, pk=pk)


def _shown(
    request: SignedInRequest, review: MonthOneReview, form: AnswerForm | None = None
) -> HttpResponse:
    figures = review.figures
    statistic = QueueStatistic(figures["statistic"])
    context = {
        "may_create": policies.can_create_anywhere(request.user),
        "review": review,
        "tiles": [
            (_("GPU utilisation"), percent(figures["utilization"]),
             _("over-sized below %(limit)s") % {"limit": percent(figures["oversized_below"])}),
            (_("Memory in use"), percent(figures["memory"]), ""),
            (_("Time in the queue"), span(figures["queue"]),
             _("%(statistic)s; too long from %(limit)s")
             % {"statistic": statistic.label, "limit": span(figures["queue_limit"])}),
            (_("Jobs"), figures["jobs"], ""),
        ],
        "holes": [said(Message.from_json(hole)) for hole in figures["holes"]],
        "causes": [found for key in figures["causes"] if (found := _cause(key)) is not None],
        "may_close": review.status == review.Status.OPEN and can_close_look_back(request.user, review),
        "form": form or AnswerForm(initial={"version": review.version}),
        "trail": trail(review)[:20],
    }  # fmt: skip
    return render(request, "planning/month_one.html", context, status=422 if form else 200)


def _cause(key: str) -> tuple[str, trouble.Cause] | None:
    """The cause that was stored by name, as the table tells it now; None when it was taken out of the table."""
    symptom_key, _slash, cause_key = key.partition("/")
    symptom = BY_KEY.get(symptom_key)
    causes = symptom.causes if symptom is not None else ()
    return next(((symptom_key, cause) for cause in causes if cause.key == cause_key), None)


@require_POST
def month_one_close(request: SignedInRequest, pk: int) -> HttpResponse:
    review = _visible(request, pk)
    form = AnswerForm(request.POST)
    if not form.is_valid():
        return _shown(request, review, form)
    month_one.close(
        review_id=review.pk, answer=form.cleaned_data["answer"], by=request.user,
        seen_version=form.cleaned_data["version"],
    )  # fmt: skip
    return redirect(review)


@require_http_methods(["GET", "HEAD", "POST"])
def review_rules(request: SignedInRequest) -> HttpResponse:
    """The rules, for those who may change them."""
    if not may.can_keep_sources(request.user):
        raise Http404
    form = RulesForm(request.POST or None, instance=month_one.rules())
    if request.method == "POST" and form.is_valid():
        month_one.set_rules(by=request.user, **form.cleaned_data)
        messages.success(request, _("The rules are kept."))
        return redirect("review-rules")
    status = 422 if request.method == "POST" else 200
    return render(request, "planning/review_rules.html", {"form": form}, status=status)
