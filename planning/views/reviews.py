"""Pages of capacity reviews: list, the pack, its documents, the meeting."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core import jobs
from core.audit import trail
from core.files import download
from core.http import SignedInRequest
from core.whole import whole
from planning.forms.review_work import ActionForm, CancelForm, MeetingForm, MoveForm
from planning.forms.reviews import CloseForm, FreezeForm
from planning.models.reviews import ReviewReport, ReviewSnapshot
from planning.review_changes import changes
from planning.review_pack import build_pack
from planning.review_policies import can_freeze_review, can_hold_review, can_see_reviews
from planning.review_use import pool_choices
from planning.selectors.review_work import recommendations
from planning.selectors.reviews import visible_reviews
from planning.services import reviews
from planning.services.review_meeting import agenda_of, participants
from planning.services.reviews import readers
from planning.views.follow_ups import shown_decisions


@require_safe
def review_list(request: SignedInRequest) -> HttpResponse:
    if not can_see_reviews(request.user):
        raise Http404
    page = Paginator(visible_reviews(request.user), 50).get_page(request.GET.get("page"))
    return render(request, "planning/review_list.html", {"page": page})


@require_safe
def review_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """The latest snapshot, or the one named by ?version=."""
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    snapshots = list(review.snapshots.select_related("frozen_by"))
    snapshot = _asked_snapshot(request, snapshots)
    reports = list(snapshot.reports.select_related("job", "file")) if snapshot else []
    return render(
        request,
        "planning/review_detail.html",
        {
            "review": review,
            "snapshot": snapshot,
            "snapshots": snapshots,
            "pack": build_pack(snapshot.data, number=snapshot.number) if snapshot else None,
            "reports": reports,
            **_changed(snapshot, snapshots),
            "actions": shown_decisions(request.user, review.actions.select_related("owner")),
            "may_decide": can_hold_review(request.user)
            and review.status in {review.Status.REPORT_READY, review.Status.IN_SESSION},
            "action_form": ActionForm(pools=pool_choices(recommendations(review))),
            "may_move": can_hold_review(request.user)
            and review.status not in {review.Status.IN_SESSION, review.Status.CLOSED},
            "move_form": MoveForm(
                auto_id="move-%s",
                initial={"meeting_on": review.meeting_on, "version": review.version},
            ),
            "cancel_form": CancelForm(auto_id="cancel-%s", initial={"version": review.version}),
            "meeting_form": MeetingForm(
                auto_id="meeting-%s",
                people=readers(),
                initial={
                    "agenda": review.agenda,
                    "people": [user.pk for user in review.participants.all()],
                    "version": review.version,
                },
            ),
            "agenda": agenda_of(review),
            "people": participants(review),
            "trail": trail(review)[:30],
            "may_freeze": can_freeze_review(request.user)
            and review.status not in {review.Status.IN_SESSION, review.Status.CLOSED},
            "may_open": can_hold_review(request.user)
            and review.cancelled_at is None
            and review.status == review.Status.REPORT_READY,
            "may_close": review.status == review.Status.IN_SESSION
            and review.chair_id == request.user.pk,
            "freeze_form": FreezeForm(initial={"version": review.version}, again=bool(snapshots)),
            "close_form": CloseForm(initial={"version": review.version}),
        },
    )


CHANGES = 200


def _changed(snapshot: ReviewSnapshot | None, snapshots: list[ReviewSnapshot]) -> dict[str, Any]:
    """What the shown version changed against the one before."""
    before = next((s for s in snapshots if snapshot and s.number == snapshot.number - 1), None)
    if snapshot is None or before is None:
        return {}
    found = changes(before.data, snapshot.data)
    rows = [[f"{c.part} {c.row}".strip(), c.field, c.before, c.after] for c in found[:CHANGES]]
    columns = [(_("Row"), ""), (_("Figure"), ""), (_("Before"), "num"), (_("Now"), "num")]
    return {
        "before": before,
        "changed": rows,
        "change_columns": columns,
        "changed_count": len(found),
    }


def _asked_snapshot(
    request: SignedInRequest, snapshots: list[ReviewSnapshot]
) -> ReviewSnapshot | None:
    asked = request.GET.get("version", "")
    if not asked:
        return snapshots[0] if snapshots else None
    for snapshot in snapshots:
        if str(snapshot.number) == asked:
            return snapshot
    raise Http404(_("No such version"))


@require_safe
def review_report(request: SignedInRequest, pk: int, report_pk: int) -> FileResponse:
    """The PDF, for those who may read the review."""
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    report = get_object_or_404(
        ReviewReport.objects.select_related("file"), pk=report_pk, snapshot__review=review
    )
    if report.file is None:
        raise Http404(_("This document is not made yet"))
    return download(report.file)


@require_POST
def review_report_retry(request: SignedInRequest, pk: int, report_pk: int) -> HttpResponse:
    """Draw a document again whose drawing failed."""
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    report = get_object_or_404(
        ReviewReport.objects.select_related("job"), pk=report_pk, snapshot__review=review
    )
    if not can_freeze_review(request.user):
        raise Http404
    if report.job is not None:
        jobs.retry(report.job, owner=request.user)
    return redirect(review)


@require_POST
def review_open(request: SignedInRequest, pk: int) -> HttpResponse:
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    version = request.POST.get("version", "")
    reviews.open_session(
        review_id=review.pk,
        by=request.user,
        seen_version=whole(version),
    )
    return redirect(review)


@require_POST
def review_close(request: SignedInRequest, pk: int) -> HttpResponse:
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    form = CloseForm(request.POST)
    if not form.is_valid():
        return render(
            request, "planning/review_close.html", {"review": review, "form": form}, status=422
        )
    reviews.close_review(
        review_id=review.pk,
        minutes=form.cleaned_data["minutes"],
        by=request.user,
        seen_version=form.cleaned_data["version"],
    )
    return redirect(review)
