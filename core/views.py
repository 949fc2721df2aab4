"""Notices, jobs, the audit trail, preferences and the choice of colours. The gallery is in core/gallery.py."""

from __future__ import annotations

import json
from datetime import UTC
from zoneinfo import available_timezones

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from rest_framework.authtoken.models import Token

from core import jobs
from core.context_processors import THEME_COOKIE, THEMES
from core.exports import Column, export_response
from core.forms import AuditFilterForm, JobFilterForm, PreferencesForm
from core.http import SignedInRequest
from core.models import AuditEntry, Job, Notice
from core.policies import can_cancel_job, can_retry_job, can_see_job, can_watch_job
from core.selectors import filtered_audit, visible_audit, visible_jobs
from core.sign_in import own_address
from core.tokens import issue_token, revoke_token

PAGE = 50


@require_safe
def notice_list(request: SignedInRequest) -> HttpResponse:
    """My notices, newest first."""
    page = Paginator(Notice.objects.filter(recipient=request.user), PAGE).get_page(
        request.GET.get("page")
    )
    return render(request, "core/notice_list.html", {"page": page})


@require_POST
def notice_open(request: SignedInRequest, pk: int) -> HttpResponse:
    """Mark as read and go where it points."""
    notice = get_object_or_404(Notice, pk=pk, recipient=request.user)
    Notice.objects.filter(pk=notice.pk, read_at=None).update(read_at=timezone.now())
    return redirect(own_address(request, notice.url) or "notice-list")


@require_POST
def notice_read_all(request: SignedInRequest) -> HttpResponse:
    """Mark every notice of this person as read."""
    Notice.objects.filter(recipient=request.user, read_at=None).update(read_at=timezone.now())
    return redirect("notice-list")


@require_safe
def job_list(request: SignedInRequest) -> HttpResponse:
    """My background jobs; everyone's for operators."""
    form = JobFilterForm(request.GET)
    rows = visible_jobs(request.user)
    if form.is_valid() and (status := form.cleaned_data["status"]):
        rows = rows.filter(status=status)
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    return render(request, "core/job_list.html", {"page": page, "form": form})


def _job(request: SignedInRequest, pk: str) -> Job:
    job = get_object_or_404(Job.objects.select_related("owner"), pk=pk)
    if not can_see_job(request.user, job):
        raise Http404
    return job


@require_safe
def job_detail(request: SignedInRequest, pk: str) -> HttpResponse:
    """Progress of one job. Polled as a fragment until it ends; then the page around it reloads, or goes to `next`.

    The fragment is also for readers of a page that shows the job and handed out its `watch` token.
    """
    job = get_object_or_404(Job.objects.select_related("owner"), pk=pk)
    if not (
        can_watch_job(request.user, job, request.GET.get("watch", ""))
        if request.htmx
        else can_see_job(request.user, job)
    ):
        raise Http404
    following = own_address(request, request.GET.get("next", ""))
    if not request.htmx:
        return render(request, "core/job_detail.html", {"job": job, "next": following})
    response = render(request, "components/progress.html", {"job": job, "next": following})
    if not job.is_open:
        if following and job.status == Job.Status.DONE:
            response["HX-Redirect"] = following
        else:
            response["HX-Refresh"] = "true"
    return response


@require_POST
def job_cancel(request: SignedInRequest, pk: str) -> HttpResponse:
    """Stop at the next stage. A job that has ended meanwhile is left as it is, and the page says so."""
    job = _job(request, pk)
    if can_cancel_job(request.user, job):
        jobs.cancel(job, by=request.user)
    else:
        messages.info(request, _("The job had already ended."))
    return redirect(own_address(request, request.POST.get("next", "")) or job_address(job))


@require_POST
def job_retry(request: SignedInRequest, pk: str) -> HttpResponse:
    """Put a failed or cancelled job back in the queue."""
    job = _job(request, pk)
    if can_retry_job(request.user, job):
        jobs.retry(job, owner=job.owner)
    else:
        messages.info(request, _("Only a failed or cancelled job can be started again."))
    return redirect(job_address(job))


def job_address(job: Job) -> str:
    """The page of a job."""
    return reverse("job-detail", args=[job.pk])


@require_safe
def audit_list(request: SignedInRequest) -> HttpResponse:
    """The trail, for those who may read it: own teams' entries, or all for central roles."""
    form = AuditFilterForm(request.GET)
    entries = visible_audit(request.user)
    if form.is_valid():
        entries = filtered_audit(entries, **form.cleaned_data)
    page = Paginator(entries, PAGE).get_page(request.GET.get("page"))
    return render(request, "core/audit_list.html", {"page": page, "form": form})


AUDIT_COLUMNS: tuple[Column[AuditEntry], ...] = (
    Column("id", lambda e: e.pk),
    Column("at_utc", lambda e: e.at.astimezone(UTC).isoformat(timespec="seconds")),
    Column("action", lambda e: e.action),
    Column("object_type", lambda e: e.object_type),
    Column("object_id", lambda e: e.object_id),
    Column("object_label", lambda e: e.object_label),
    Column("from_state", lambda e: e.from_state),
    Column("to_state", lambda e: e.to_state),
    Column("actor", lambda e: e.actor.email if e.actor else None),
    Column("on_behalf_of", lambda e: e.on_behalf_of.email if e.on_behalf_of else None),
    Column("team", lambda e: e.team.slug if e.team else None),
    Column("reason", lambda e: e.reason),
    Column("facts", lambda e: json.dumps(e.data, ensure_ascii=False, sort_keys=True)),
    Column("context", lambda e: e.context),
)


@require_safe
def audit_export(request: SignedInRequest, kind: str) -> HttpResponseBase:
    """The filtered trail as CSV or XLSX, oldest first. A filter that is not valid is refused, not ignored."""
    form = AuditFilterForm(request.GET)
    if not form.is_valid():
        return redirect(f"{reverse('audit-list')}?{request.GET.urlencode()}")
    entries = filtered_audit(visible_audit(request.user), **form.cleaned_data).order_by("pk")
    return export_response(
        kind, name="audit-trail", columns=AUDIT_COLUMNS, rows=entries.iterator(chunk_size=1000)
    )


@require_safe
def audit_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One entry with its facts, and the other entries of the same act."""
    visible = visible_audit(request.user)
    entry: AuditEntry = get_object_or_404(visible, pk=pk)
    same_act = visible.filter(context=entry.context).exclude(pk=pk) if entry.context else []
    return render(request, "core/audit_detail.html", {"entry": entry, "same_act": same_act})


@require_http_methods(["GET", "HEAD", "POST"])
def preferences(request: SignedInRequest) -> HttpResponse:
    """Name, language and zone of the signed-in user."""
    form = PreferencesForm(request.POST or None, instance=request.user)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Your preferences were saved."))
        response = redirect("preferences")
        # The switch in the page head wins over the stored language; saving here is a fresh choice.
        response.delete_cookie(settings.LANGUAGE_COOKIE_NAME)
        return response
    # A failed form has already put the bad values on request.user; the shell must show the stored ones.
    request.user.refresh_from_db()
    return _preferences(request, form, status=422 if request.method == "POST" else 200)


def _preferences(
    request: SignedInRequest, form: PreferencesForm, *, key: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "form": form,
        "zones": sorted(available_timezones()),
        "token": Token.objects.filter(user=request.user).first(),
        "key": key,
    }
    return render(request, "core/preferences.html", context, status=status)


@require_POST
def token_issue(request: SignedInRequest) -> HttpResponse:
    """A fresh key to the API, shown on this answer only."""
    key = issue_token(request.user)
    response = _preferences(request, PreferencesForm(instance=request.user), key=key)
    return response


@require_POST
def token_revoke(request: SignedInRequest) -> HttpResponse:
    """Take the key to the API away."""
    if revoke_token(request.user):
        messages.success(request, _("The API key was revoked."))
    return redirect("preferences")


@login_not_required
@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark, or (anything else) as the system says, on this device."""
    response = redirect(own_address(request, request.POST.get("next", "")) or "home")
    choice = request.POST.get("theme", "")
    if choice in THEMES:
        response.set_cookie(
            THEME_COOKIE,
            choice,
            max_age=365 * 24 * 3600,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
        )
    else:
        response.delete_cookie(THEME_COOKIE)
    return response
