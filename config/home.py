"""What waits for a person, over all apps: the home page's sections."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from core.models import Job, Notice, User
from core.roles import Role, has_role_anywhere
from core.templatetags.ui import ago, job_title, money, said
from planning.models.requests import CapacityRequest
from planning.policies import can_create_anywhere
from planning.selectors.approvals import inbox
from planning.waiting import Waiting, waiting

LENGTH = 8


def sections(user: User) -> list[dict[str, Any]]:
    """Sections for templates/core/home.html, those without anything to show left out where they do not concern."""
    rows = waiting(user)
    others = [row for row in rows if row.decision]
    steps = [row for row in rows if not (row.decision or row.review or row.request)]
    looks = [row for row in rows if row.review]
    found = [
        _decisions(user, others), _returned([row for row in rows if row.request]), _buying(user, steps),
        _reviews(looks), _requests(user), _jobs(user), _notices(user),
    ]  # fmt: skip
    return [section for section in found if section is not None]


def _decisions(user: User, others: list[Waiting]) -> dict[str, Any] | None:
    """Votes on requests and every other decision: the rows of the approvals page."""
    items = inbox(user)
    if not items and not others and not has_role_anywhere(user, Role.APPROVER, Role.FINANCE):
        return None
    rows = [
        {
            "title": str(entry.step.revision.request),
            "url": entry.step.revision.request.get_absolute_url(),
            "meta": f"{entry.step.revision.request.team} · {entry.step.revision.request.requester}",
            "end": money(entry.step.revision.plan.base_money),
            "end_note": ago(entry.step.opened_at),
        }
        for entry in items
    ]
    rows += [_shown(row) for row in others]
    return {
        "title": _("Waiting for your decision"),
        "url": reverse("approval-list"),
        "empty_text": _("Nothing waits for your decision."),
        "rows": rows[:LENGTH],
    }


def _returned(rows: list[Waiting]) -> dict[str, Any] | None:
    """Own requests that an approver returned."""
    if not rows:
        return None
    return {
        "title": _("Waiting for you"),
        "url": f"{reverse('request-list')}?status=changes_requested",
        "empty_text": "",
        "rows": [_shown(row) for row in rows[:LENGTH]],
    }


def _buying(user: User, rows: list[Waiting]) -> dict[str, Any] | None:
    """Steps of buying and proving that this person may take, longest waiting first."""
    if not rows and not has_role_anywhere(user, Role.PROCUREMENT, Role.OPERATIONS):
        return None
    place = (
        "rfq-list"
        if has_role_anywhere(user, Role.PROCUREMENT)
        else "delivery-list"
        if has_role_anywhere(user, Role.OPERATIONS)
        else "invoice-list"
    )
    return {
        "title": _("Waiting for you in buying and proving"),
        "url": reverse(place),
        "empty_text": _("Nothing waits for you here."),
        "rows": [_shown(row) for row in rows[:LENGTH]],
    }


def _reviews(rows: list[Waiting]) -> dict[str, Any] | None:
    """Looks back to answer, own action items and plans asked for."""
    if not rows:
        return None
    return {
        "title": _("Waiting for you in reviews"),
        "url": "",  # of several kinds
        "empty_text": "",
        "rows": [_shown(row) for row in rows[:LENGTH]],
    }


def _shown(row: Waiting) -> dict[str, Any]:
    return {
        "title": row.title,
        "url": row.url,
        "meta": str(row.label),
        "badge": row.state,
        "badge_label": row.state_label,
        "end": row.note,
        "end_note": ago(row.since),
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
        "empty_text": _("No request is open."),
        "empty_url": reverse("request-kinds") if can_create_anywhere(user) else "",
        "empty_url_text": _("New request"),
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
