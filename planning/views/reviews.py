"""Pages of capacity reviews: list, the pack, its documents, the meeting."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.reference import accelerator_label
from core import jobs
from core.audit import trail
from core.files import download
from core.http import SignedInRequest
from core.whole import whole
from planning.forms.review_work import ActionForm, CancelForm, MeetingForm, MoveForm
from planning.forms.reviews import CloseForm, FreezeForm
from planning.models.calibration import work_label
from planning.models.reviews import BOTH, CapacityReview, ReviewReport, ReviewSnapshot
from planning.review_changes import changes
from planning.review_pack import Pack, build_pack
from planning.review_policies import can_freeze_review, can_hold_review, can_see_reviews
from planning.review_report import rows_csv
from planning.review_rows import LISTS, cell, fields_of, frozen_rows, with_links
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
            "pack": _linked(review, snapshot) if snapshot else None,
            "reports": reports,
            "may_ask_both": snapshot is not None
            and can_freeze_review(request.user)
            and not any(report.language == BOTH for report in reports),
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


def _linked(review: CapacityReview, snapshot: ReviewSnapshot) -> Pack:
    base = reverse("review-detail", args=[review.pk]) + "rows/"
    pack = build_pack(snapshot.data, number=snapshot.number)
    return with_links(pack, snapshot.data, base, snapshot.number)


ROWS = 100


@require_safe
def review_rows(request: SignedInRequest, pk: int, name: str) -> HttpResponse:
    """Rows of one frozen list, of the version ?version=, where fields are as the address says; ?format=csv."""
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    snapshot = _asked_snapshot(request, list(review.snapshots.all()))
    try:
        if snapshot is None:
            raise KeyError(name)
        everything = frozen_rows(snapshot.data, name)
    except KeyError:
        raise Http404(_("No such rows")) from None
    fields = fields_of(everything)
    where = {field: request.GET[field] for field in fields if field in request.GET}
    rows = frozen_rows(snapshot.data, name, where)
    if request.GET.get("format") == "csv":
        response = HttpResponse(rows_csv(rows), content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = (
            f'attachment; filename="{review}-v{snapshot.number}-{name}.csv"'
        )
        return response
    page = Paginator(rows, ROWS).get_page(request.GET.get("page"))
    return render(
        request,
        "planning/review_rows.html",
        {
            "review": review, "snapshot": snapshot, "name": name, "title": LISTS[name], "page": page,
            "where": [(field, _shown(field, value)) for field, value in where.items()],
            "up": f"{review.get_absolute_url()}?version={snapshot.number}",
            "review_title": _("Capacity review %(quarter)s") % {"quarter": review},
            "query": urlencode({"version": snapshot.number, **where}),
            "columns": [(field, "") for field in fields],
            "rows": [[_shown(field, cell(row.get(field))) for field in fields] for row in page],
        },
    )  # fmt: skip


def _shown(field: str, text: str) -> str:
    """A frozen value as people read it; the CSV keeps the catalogue's own names."""
    return {"accelerator": accelerator_label, "work": work_label}.get(field, str)(text)


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
def review_report_ask(request: SignedInRequest, pk: int) -> HttpResponse:
    """Have the shown version drawn in a language or in both."""
    review = get_object_or_404(visible_reviews(request.user), pk=pk)
    number = whole(request.POST.get("number", "")) or 0
    reviews.ask_for_report(
        review_id=review.pk,
        number=number,
        language=request.POST.get("language", ""),
        by=request.user,
    )
    return redirect(f"{review.get_absolute_url()}?version={number}")


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
