"""Every state and every step between states of this app, in one place: the code asks it, a test walks it, and
``manage.py draw_states`` writes it to docs/states.md.

A rule says: from which states, to which, and who. Guards and effects are told in words here and held by the service
that bears the action's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.machines import Rule as Rule
from core.machines import actors_for as actors_for
from core.machines import transitions as transitions


class RequestStatus(models.TextChoices):
    DRAFT = "draft", pgettext_lazy("state", "Draft")
    SUBMITTED = "submitted", pgettext_lazy("state", "Submitted")
    IN_REVIEW = "in_review", _("In review")
    CHANGES_REQUESTED = "changes_requested", _("Changes requested")
    APPROVED = "approved", pgettext_lazy("state", "Approved")
    SOURCING = "sourcing", _("Sourcing")
    FULFILLED = "fulfilled", _("Fulfilled")
    REJECTED = "rejected", pgettext_lazy("state", "Rejected")
    CANCELLED = "cancelled", pgettext_lazy("state", "Cancelled")


class StudyStatus(models.TextChoices):
    DRAFT = "draft", pgettext_lazy("state", "Draft")
    RUNNING = "running", _("Running")
    READY = "ready", _("Ready")
    PUBLISHED = "published", _("Published")
    STALE = "stale", _("Out of date")
    SUPERSEDED = "superseded", _("Superseded")
    FAILED = "failed", _("Failed")


class StepStatus(models.TextChoices):
    WAITING = "waiting", _("Waiting for an earlier step")
    PENDING = "pending", _("Waiting for a decision")
    APPROVED = "approved", pgettext_lazy("state", "Approved")
    REJECTED = "rejected", pgettext_lazy("state", "Rejected")
    RETURNED = "returned", _("Returned for changes")
    CANCELLED = "cancelled", pgettext_lazy("state", "Cancelled")
    VOID = "void", _("Void")


class ChangeStatus(models.TextChoices):
    PROPOSED = "proposed", _("Waiting for a second person")
    POSTED = "posted", _("Posted")
    DECLINED = "declined", _("Declined")


class AllocationStatus(models.TextChoices):
    BOOKED = "booked", _("Booked")
    RELEASED = "released", _("Released")


class Actor(StrEnum):
    """In which capacity a person acts on a request. A superuser without a role has none."""

    REQUESTER = "requester"  # holds Requester in the request's team
    TEAM_LEAD = "team lead"  # holds Approver in the request's team
    BUDGET_APPROVER = "budget approver"  # holds Approver for the whole organisation
    PROCUREMENT = "procurement"
    FINANCE = "finance"
    OPERATIONS = "operations"
    ASSIGNEE = (
        "assignee"  # may vote on the step: its authority, no part in the request, within limit
    )
    SECOND_PERSON = "second person"  # finance or budget approver, and not the one who proposed
    SYSTEM = "system"


R, S, T, C, A = RequestStatus, StudyStatus, StepStatus, ChangeStatus, Actor
L = AllocationStatus

REQUEST_RULES: tuple[Rule, ...] = (
    Rule(
        "edit", (R.DRAFT,), (R.DRAFT,), (A.REQUESTER, A.TEAM_LEAD),
        "the version that was read is the current one; every value within its limit",
        "the editor counts as an author of the revision and may not approve it",
    ),
    Rule(
        "choose_plan", (R.DRAFT, R.SUBMITTED), (R.DRAFT, R.SUBMITTED),
        (A.REQUESTER, A.TEAM_LEAD, A.PROCUREMENT),
        "the study is ready and was made for this content; the plan is one that fits",
        "amount, rate and date are frozen; on a submitted request the review starts",
    ),
    Rule(
        "submit", (R.DRAFT,), (R.SUBMITTED,), (A.REQUESTER, A.TEAM_LEAD),
        "values complete and in order; a revised request differs from what it revises",
        "the revision is frozen with its hash; with a plan chosen the review starts at once",
    ),
    Rule(
        "start_review", (R.SUBMITTED,), (R.IN_REVIEW,), (A.SYSTEM,),
        "a plan is chosen; at least one approval rule applies",
        "approval steps made from the policy; amount reserved (soft: over budget is a warning)",
    ),
    Rule(
        "recall", (R.SUBMITTED, R.IN_REVIEW), (R.DRAFT,), (A.REQUESTER,),
        "a reason, once a step was approved",
        "steps void; reservation released; the next revision starts as a copy",
    ),
    Rule(
        "return", (R.IN_REVIEW,), (R.CHANGES_REQUESTED,), (A.ASSIGNEE,),
        "a reason; the hash that was seen is the current one",
        "the other steps void",
    ),
    Rule(
        "reject", (R.IN_REVIEW,), (R.REJECTED,), (A.ASSIGNEE,),
        "a reason; the hash that was seen is the current one",
        "the other steps cancelled; reservation released",
    ),
    Rule(
        "grant", (R.IN_REVIEW,), (R.APPROVED,), (A.SYSTEM,),
        "every step approved for this revision; the budget row, locked, still has the money",
        "the reservation becomes firm in the quarter of the decision; sourcing may start",
    ),
    Rule(
        "revise", (R.CHANGES_REQUESTED, R.APPROVED, R.SOURCING), (R.DRAFT,), (A.REQUESTER, A.TEAM_LEAD),
        "nothing ordered yet; a reason, once approved",
        "all approvals of the old revision void; reservation released; everyone concerned is told",
    ),
    Rule(
        "lapse", (R.APPROVED,), (R.CHANGES_REQUESTED,), (A.SYSTEM,),
        "the day by which it had to be ordered is past and nothing is ordered",
        "all approvals void; reservation released; everyone concerned is told",
    ),
    Rule(
        "start_sourcing", (R.APPROVED,), (R.SOURCING,), (A.PROCUREMENT,),
        "every step of the current revision approved", "a request for quotation may refer to it",
    ),
    Rule(
        "fulfil", (R.SOURCING,), (R.FULFILLED,), (A.SYSTEM, A.PROCUREMENT),
        "accepted at least what was asked for, or closed short by procurement with a reason",
        "what is left of the reservation is released",
    ),
    Rule(
        "split", (R.DRAFT,), (R.CANCELLED,), (A.REQUESTER, A.TEAM_LEAD),
        "2 to 10 shares that sum to exactly 100 %", "a draft for each share; every author counts as an author of each",
    ),
    Rule(
        "merge", (R.DRAFT,), (R.CANCELLED,), (A.REQUESTER, A.TEAM_LEAD),
        "drafts of one team and kind that differ in volume, dates and reason alone",
        "one draft with the sum; every author counts as an author of it",
    ),
    Rule(
        "cancel", (R.DRAFT, R.SUBMITTED, R.IN_REVIEW, R.CHANGES_REQUESTED), (R.CANCELLED,),
        (A.REQUESTER, A.TEAM_LEAD), "a reason, once submitted",
        "steps cancelled; reservation released",
    ),
    Rule(
        "cancel", (R.APPROVED, R.SOURCING), (R.CANCELLED,), (A.BUDGET_APPROVER,),
        "a reason; no order stands", "reservation released",
    ),
)  # fmt: skip

STEP_RULES: tuple[Rule, ...] = (
    Rule("open", (T.WAITING,), (T.PENDING,), (A.SYSTEM,), "every step of the groups before is approved",
         "those who may decide are told once"),
    Rule("approve", (T.PENDING,), (T.PENDING, T.APPROVED), (A.ASSIGNEE,),
         "amount within the person's limit; no part in the request, in person or by delegation; no earlier vote in "
         "this group; the hash that was seen is the current one",
         "one vote, perhaps up to an amount or to be ordered by a day; approved when the quorum is reached"),
    Rule("escalate", (T.PENDING,), (T.PENDING,), (A.SYSTEM,),
         "nobody decided for the policy's number of working days; once",
         "those who may decide are reminded, the organisation's approvers are told; nothing is approved by it"),
    Rule("reject", (T.PENDING,), (T.REJECTED,), (A.ASSIGNEE,), "a reason", "the request is rejected"),
    Rule("return", (T.PENDING,), (T.RETURNED,), (A.ASSIGNEE,), "a reason", "the request goes back"),
    Rule("cancel", (T.WAITING, T.PENDING), (T.CANCELLED,), (A.SYSTEM,), "the request was rejected or cancelled"),
    Rule("void", (T.WAITING, T.PENDING, T.APPROVED), (T.VOID,), (A.SYSTEM,),
         "the request was returned, recalled or revised", "the votes stay readable"),
)  # fmt: skip

STUDY_RULES: tuple[Rule, ...] = (
    Rule("run", (S.DRAFT, S.FAILED), (S.RUNNING,), (A.REQUESTER, A.TEAM_LEAD, A.PROCUREMENT),
         "inputs pinned: prices, rates, constants, seed", "one job per hash of the inputs"),
    Rule("finish", (S.RUNNING,), (S.READY, S.FAILED), (A.SYSTEM,), "the result is stored first"),
    Rule("publish", (S.READY,), (S.PUBLISHED,), (A.PROCUREMENT, A.TEAM_LEAD), "not by the requester"),
    Rule("outdate", (S.READY, S.PUBLISHED), (S.STALE,), (A.SYSTEM,), "a newer revision or price list"),
    Rule("supersede", (S.READY, S.PUBLISHED, S.STALE), (S.SUPERSEDED,), (A.SYSTEM,), "a newer study is ready"),
)  # fmt: skip

CHANGE_RULES: tuple[Rule, ...] = (
    Rule("post", (C.PROPOSED,), (C.POSTED,), (A.SECOND_PERSON, A.SYSTEM),
         "by a second person, or at once where the policy asks for one only; the budget is open",
         "allotted, or both legs of a transfer, in one transaction"),
    Rule("decline", (C.PROPOSED,), (C.DECLINED,), (A.SECOND_PERSON,), "a reason"),
)  # fmt: skip

ALLOCATION_RULES: tuple[Rule, ...] = (
    Rule("move", (L.BOOKED,), (L.BOOKED,), (A.PROCUREMENT, A.OPERATIONS),
         "the cards are free on every new day, after the maintenance buffer",
         "requester is told; also for a longer term"),
    Rule("release", (L.BOOKED,), (L.RELEASED,), (A.PROCUREMENT, A.OPERATIONS, A.REQUESTER, A.TEAM_LEAD),
         "", "its last day is the day of release"),
)  # fmt: skip

MACHINES: dict[str, tuple[type[models.TextChoices], tuple[Rule, ...]]] = {
    "Capacity request": (RequestStatus, REQUEST_RULES),
    "Study": (StudyStatus, STUDY_RULES),
    "Approval step": (StepStatus, STEP_RULES),
    "Budget change": (ChangeStatus, CHANGE_RULES),
    "Allocation": (AllocationStatus, ALLOCATION_RULES),
}

TERMINAL_REQUEST = frozenset({R.FULFILLED, R.REJECTED, R.CANCELLED})
OPEN_REQUEST = frozenset(set(R) - TERMINAL_REQUEST)


def actions_of(rules: Iterable[Rule]) -> list[str]:
    """The actions, in the order of the table."""
    return list(dict.fromkeys(rule.action for rule in rules))
