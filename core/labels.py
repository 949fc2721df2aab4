"""Words and tones for what is stored as a code: states and audit actions."""

from __future__ import annotations

from collections.abc import Mapping

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Action code → words. Each app adds its own from AppConfig.ready() through `name_actions`.
ACTIONS: dict[str, str | Promise] = {
    "api_token.issued": _("API key made"),
    "api_token.revoked": _("API key revoked"),
}

# State code → tone. A state that is not here is neutral: nothing to do, nothing wrong.
TONES: dict[str, str] = {
    **dict.fromkeys(
        (
            "captured", "filed", "authorised", "shipped", "replacement_in", "submitted", "in_review", "review",
            "pending", "open", "opened", "running", "sourcing", "issued",
            "acknowledged", "in_transit", "arrived", "counted", "installed", "burning_in", "evaluated",
            "under_evaluation", "proposed", "standstill", "reserved", "scheduled", "in_progress", "sent", "at_vendor",
            "filed", "authorised", "shipped", "replacement_in", "expected",
        ),
        "info",
    ),
    **dict.fromkeys(
        (
            "part_accepted", "binding", "approved", "accepted", "passed", "pass", "done", "ready", "published",
            "fulfilled", "awarded", "selected",
            "final", "in_service", "burned_in", "committed", "received", "posted", "matched", "paid", "signed",
            "feasible", "resolved", "repaired", "replaced", "active", "good",
        ),
        "good",
    ),
    **dict.fromkeys(
        (
            "not_tested", "retest", "changes_requested", "returned", "stale", "partial", "part_received",
            "interrupted", "escalated",
            "quarantine", "suspended", "waived", "warn", "expiring", "incomplete", "late", "inconclusive",
        ),
        "warn",
    ),
    **dict.fromkeys(
        (
            "exception", "refused", "denied", "reject", "reversed", "voided", "rejected", "failed", "fail",
            "defective", "disqualified", "expired", "lapsed", "overdue", "blocked",
            "excluded", "infeasible", "disputed", "bad",
        ),
        "bad",
    ),
}  # fmt: skip


# Dotted path of a task → what its job does, in words. Each app adds its own through `name_jobs`.
JOBS: dict[str, str | Promise] = {}


def name_jobs(names: Mapping[str, str | Promise]) -> None:
    """Give background tasks their words."""
    JOBS.update(names)


def job_label(task: str) -> str:
    """What the job of `task` does; the path itself when nobody named it."""
    return str(JOBS.get(task, task))


def name_actions(names: Mapping[str, str | Promise]) -> None:
    """Give audit actions (noun.past) their words."""
    ACTIONS.update(names)


def action_label(code: str) -> str:
    """`rfq.awarded` in words; the code itself when nobody named it."""
    return str(ACTIONS.get(code, code))


def state_label(object_type: str, code: str) -> str:
    """The state `code` of a model known to the trail as `object_type`, in words; the code when it is not a choice."""
    try:
        field = apps.get_model(object_type)._meta.get_field("status")
    except (LookupError, ValueError, FieldDoesNotExist):
        return code
    return str(dict(getattr(field, "flatchoices", ())).get(code, code))


def type_label(object_type: str) -> str:
    """The kind of thing, in words."""
    try:
        return str(apps.get_model(object_type)._meta.verbose_name)
    except (LookupError, ValueError):
        return object_type


def tone(code: str) -> str:
    """neutral, info, good, warn or bad."""
    return TONES.get(str(code).lower(), "neutral")


name_actions(
    {
        "job.cancelled": _("Job cancelled"),
        "team.renamed": _("Team renamed"),
        "membership.granted": _("Role granted"),
        "membership.revoked": _("Role revoked"),
    }
)
