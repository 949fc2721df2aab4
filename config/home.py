"""What waits for a person, over all apps: the home page's sections."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.models import Job, Notice, User
from core.roles import Role, has_role_anywhere
from core.templatetags.ui import ago, job_title, money, said
from planning.models.requests import CapacityRequest
from planning.selectors.approvals import inbox
from procurement.models import Acceptance, Award, Delivery, Invoice, PurchaseOrder, Rfq, Rma
from procurement.policies import can

LENGTH = 8


def sections(user: User) -> list[dict[str, Any]]:
    """Sections for templates/core/home.html, those without anything to show left out where they do not concern."""
    found = [
        _decisions(user), _buying(user), _requests(user), _jobs(user), _notices(user),
    ]  # fmt: skip
    return [section for section in found if section is not None]


def _decisions(user: User) -> dict[str, Any] | None:
    items = inbox(user)
    if not items and not has_role_anywhere(user, Role.APPROVER, Role.FINANCE):
        return None
    return {
        "title": _("Waiting for your decision"),
        "url": reverse("approval-list"),
        "empty_text": _("No request waits for your decision."),
        "rows": [
            {
                "title": str(entry.step.revision.request),
                "url": entry.step.revision.request.get_absolute_url(),
                "meta": f"{entry.step.revision.request.team} · {entry.step.revision.request.requester}",
                "end": money(entry.step.revision.plan.base_money),
                "end_note": ago(entry.step.opened_at),
            }
            for entry in items[:LENGTH]
        ],
    }


# What waits in buying and proving: rows in a state, and the step that takes them out of it.
QUEUES: tuple[tuple[Any, str, str, Any], ...] = (
    (Award, "proposed", "approve_award", gettext_lazy("Award to decide")),
    (Acceptance, "proposed", "sign_acceptance", gettext_lazy("Acceptance to sign")),
    (PurchaseOrder, "draft", "issue", gettext_lazy("Order to issue")),
    (Rfq, "draft", "publish", gettext_lazy("RFQ to publish")),
    (Rfq, "closed", "open_bids", gettext_lazy("Bids to open")),
    (Rfq, "opened", "propose_award", gettext_lazy("Quotes to compare")),
    (Delivery, "expected", "post", gettext_lazy("Delivery to receive")),
    (Rma, "draft", "file_rma", gettext_lazy("Return to file")),
    (Invoice, "captured", "match_invoice", gettext_lazy("Invoice to match")),
    (Invoice, "matched", "approve_invoice", gettext_lazy("Invoice to approve")),
)


def _buying(user: User) -> dict[str, Any] | None:
    """Steps of buying and proving that this person may take, longest waiting first."""
    found = []
    for model, status, action, label in QUEUES:
        rows = model.objects.visible_to(user).filter(status=status).order_by("status_since")
        found += [(row, label) for row in rows[:LENGTH] if can(user, action, row)]
    found.sort(key=lambda pair: pair[0].status_since)
    if not found and not has_role_anywhere(user, Role.PROCUREMENT, Role.OPERATIONS):
        return None
    return {
        "title": _("Waiting for you in buying and proving"),
        "url": reverse("rfq-list")
        if has_role_anywhere(user, Role.PROCUREMENT)
        else reverse("asset-list"),
        "empty_text": _("Nothing waits for you here."),
        "rows": [
            {
                "title": str(row),
                "url": row.get_absolute_url(),
                "meta": str(label),
                "badge": row.status,
                "badge_label": row.get_status_display(),
                "end_note": ago(row.status_since),
            }
            for row, label in found[:LENGTH]
        ],
    }


def _requests(user: User) -> dict[str, Any] | None:
    rows = list(
        CapacityRequest.objects.visible_to(user)
        .open()
        .select_related("team", "requester")
        .order_by("-status_since")[:LENGTH]
    )
    if not rows and not has_role_anywhere(user, Role.REQUESTER):
        return None
    return {
        "title": _("Open requests"),
        "url": reverse("request-list"),
        "empty_text": _("No request is open. File one under Requests."),
        "rows": [
            {
                "title": str(row),
                "url": row.get_absolute_url(),
                "meta": f"{row.team} · {row.requester}",
                "badge": row.status,
                "badge_label": row.get_status_display(),
                "end_note": ago(row.status_since),
            }
            for row in rows
        ],
    }


def _jobs(user: User) -> dict[str, Any] | None:
    rows = list(
        Job.objects.filter(owner=user, status__in=[Job.Status.QUEUED, Job.Status.RUNNING])[:LENGTH]
    )
    if not rows:
        return None
    return {
        "title": _("Running for you"),
        "url": reverse("job-list"),
        "empty_text": "",
        "rows": [
            {
                "title": job_title(row),
                "url": reverse("job-detail", args=[row.pk]),
                "badge": row.status,
                "badge_label": row.get_status_display(),
                "meta": said(row.stage),
                "end": f"{row.percent} %",
            }
            for row in rows
        ],
    }


def _notices(user: User) -> dict[str, Any] | None:
    rows = list(Notice.objects.filter(recipient=user, read_at=None)[:LENGTH])
    if not rows:
        return None
    return {
        "title": _("News"),
        "url": reverse("notice-list"),
        "empty_text": "",
        "rows": [
            {"title": said(row.message), "url": row.url, "end_note": ago(row.created_at)}
            for row in rows
        ],
    }
