"""Notices, jobs, the audit trail, preferences and the component gallery."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core import jobs
from core.forms import PreferencesForm
from core.http import SignedInRequest
from core.models import AuditEntry, Job, Notice
from core.policies import can_cancel_job, can_see_job
from core.selectors import visible_audit


@require_safe
def notice_list(request: SignedInRequest) -> HttpResponse:
    rows = Paginator(Notice.objects.filter(recipient=request.user), 50).get_page(
        request.GET.get("page")
    )
    return render(request, "core/notice_list.html", {"rows": rows})


@require_POST
def notice_open(request: SignedInRequest, pk: int) -> HttpResponse:
    """Mark as read and go where it points."""
    notice = get_object_or_404(Notice, pk=pk, recipient=request.user)
    Notice.objects.filter(pk=notice.pk, read_at=None).update(read_at=timezone.now())
    return redirect(notice.url or "notice-list")


@require_safe
def job_detail(request: SignedInRequest, pk: str) -> HttpResponse:
    """Progress of one job; polled as a fragment until it ends."""
    job = get_object_or_404(Job, pk=pk)
    if not can_see_job(request.user, job):
        raise Http404
    template = "core/job_detail.html#progress" if request.htmx else "core/job_detail.html"
    return render(request, template, {"job": job})


@require_POST
def job_cancel(request: SignedInRequest, pk: str) -> HttpResponse:
    job = get_object_or_404(Job, pk=pk)
    if not can_cancel_job(request.user, job):
        raise Http404
    jobs.cancel(job, by=request.user)
    return redirect("job-detail", pk=pk)


@require_safe
def audit_list(request: SignedInRequest) -> HttpResponse:
    """The trail, for those who may read it: own teams' entries, or all for central roles."""
    entries = visible_audit(request.user)
    if action := request.GET.get("action", "").strip():
        entries = entries.filter(action__startswith=action)
    rows = Paginator(entries, 50).get_page(request.GET.get("page"))
    return render(request, "core/audit_list.html", {"rows": rows, "action": action})


def preferences(request: SignedInRequest) -> HttpResponse:
    form = PreferencesForm(request.POST or None, instance=request.user)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Your preferences were saved."))
        return redirect("preferences")
    return render(
        request,
        "core/preferences.html",
        {"form": form},
        status=422 if request.method == "POST" else 200,
    )


@require_safe
def gallery(request: SignedInRequest) -> HttpResponse:
    """Every component in every state, for those who build and check pages."""
    return render(request, "core/gallery.html", {"entry": AuditEntry(action="gallery.shown")})
