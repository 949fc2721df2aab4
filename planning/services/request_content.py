"""What a request says: its terms and title checked, and the rows that hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from core.errors import InputError, NotPermitted
from core.messages import Message, msg
from core.models import Team, User
from core.sequences import next_number
from planning import policies, workloads
from planning.models.requests import (
    CapacityRequest,
    LatencyClass,
    RequestRevision,
    Residence,
)
from planning.services.estimates import catalogue

# What may be given beside the workload; the rest of RequestRevision.CONTENT.
TERMS = tuple(name for name in RequestRevision.CONTENT if name != "workload")
DEFAULTS: dict[str, Any] = {
    "start": None, "duration_days": None, "justification": "", "data_residence": Residence.ANYWHERE,
    "interruptible": False, "checkpoint_seconds": None, "latency_class": "", "accuracy_loss_limit": None,
    "region": "",
}  # fmt: skip
MAX_DAYS = 3660


def check_terms(kind: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[InputError]]:
    """The terms of a request of `kind` with defaults filled in, and every error."""
    errors: list[InputError] = []
    terms = {**DEFAULTS, **given}

    def refuse(field: str, message: Message, value: object = None, limit: object = None) -> None:
        errors.append(InputError(field, message, value=value, limit=limit))

    for name in sorted(set(given) - set(TERMS)):
        refuse(name, msg("%(field)s is not a field of a request", field=name))
        terms.pop(name)
    need_by, start = terms.get("need_by"), terms["start"]
    if not isinstance(need_by, date):
        refuse("need_by", msg("%(field)s is missing", field="need_by"))
    elif start is not None and start > need_by:
        refuse("start", msg("The start is after the day by which it is needed"), start, need_by)
    days = terms["duration_days"]
    if days is not None and not 1 <= days <= MAX_DAYS:
        refuse("duration_days", msg("%(field)s is %(value)s; it must be within %(limit)s %(unit)s",
               field="duration_days", value=days, limit=f"1 … {MAX_DAYS}", unit="days"),
               days, f"1 … {MAX_DAYS}")  # fmt: skip
    loss = terms["accuracy_loss_limit"]
    if loss is not None and not 0 <= loss <= 1:
        refuse("accuracy_loss_limit", msg("%(field)s is %(value)s; it must be within %(limit)s %(unit)s",
               field="accuracy_loss_limit", value=loss, limit="0 … 1", unit="1"), loss, "0 … 1")  # fmt: skip
    for name, choices in (("data_residence", Residence), ("latency_class", LatencyClass)):
        if terms[name] not in choices.values:
            limit = ", ".join(filter(None, choices.values))
            refuse(name, msg("%(field)s: %(value)s is none of %(limit)s", field=name,
                   value=str(terms[name]), limit=limit), terms[name], limit)  # fmt: skip
    asked = {
        "interruptible": kind in workloads.ASKS_INTERRUPTIBLE,
        "checkpoint_seconds": kind in workloads.ASKS_INTERRUPTIBLE,
        "latency_class": kind in workloads.ASKS_LATENCY,
        "accuracy_loss_limit": kind in workloads.ASKS_ACCURACY,
    }
    for name, wanted in asked.items():
        if not wanted and terms[name] not in (None, False, ""):
            refuse(
                name,
                msg("%(field)s is not asked for this kind of workload", field=name),
                terms[name],
            )
    checkpoint = terms["checkpoint_seconds"]
    if terms["interruptible"] and checkpoint is None:
        refuse(
            "checkpoint_seconds", msg("Work that may be interrupted needs a checkpoint interval")
        )
    if checkpoint is not None and not 1 <= checkpoint <= 30 * 86400:
        refuse("checkpoint_seconds", msg("%(field)s is %(value)s; it must be within %(limit)s %(unit)s",
               field="checkpoint_seconds", value=checkpoint, limit="1 … 2592000", unit="s"),
               checkpoint, "1 … 2592000")  # fmt: skip
    return terms, errors


def checked_content(
    kind: str, workload: Mapping[str, Any], terms: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything of a revision, checked; raises one InputError or all as WorkloadErrors.

    `workload` may be one that a revision keeps: what it assumed is worked out again from what was told.
    """
    if isinstance(workload, Mapping):
        workload = workloads.told_part(workload)
    if kind not in workloads.FIELDS:
        workloads.normalise(kind, workload)
    clean, errors = workloads.problems(kind, workload)
    checked, more = check_terms(kind, terms)
    if name := clean.get("accelerator"):
        try:
            catalogue().find_accelerators([name])  # found out now, not when the study runs
        except InputError as error:
            errors.append(error)
    errors += more
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise workloads.WorkloadErrors(errors)
    return {"workload": workloads.kept_apart(kind, workload, clean), **checked}


def checked_title(title: str) -> str:
    title = " ".join(title.split())
    if not title:
        raise InputError("title", msg("%(field)s is missing", field="title"))
    if len(title) > 160:
        raise InputError(
            "title", msg("%(field)s is longer than %(limit)s characters", field="title", limit=160),
            value=title[:180], limit=160,
        )  # fmt: skip
    return title


def open_team(team_id: int, by: User) -> Team:
    """The team, when `by` may file requests for it and it is active. Raises NotPermitted or InputError."""
    if not policies.can_create(by, team_id):
        raise NotPermitted()
    team = Team.objects.get(pk=team_id)
    if not team.active:
        raise InputError(
            "team", msg("%(team)s is no longer active", team=str(team)), value=team.slug
        )
    return team


def new_draft(
    *,
    team: Team,
    kind: str,
    title: str,
    content: Mapping[str, Any],
    origin: str,
    by: User,
    requester: User | None = None,
    authors: Iterable[User] = (),
) -> CapacityRequest:
    """A request with its first revision, of content that was checked. Call inside a transaction."""
    request = CapacityRequest.objects.create(
        number=next_number("request"),
        team=team,
        requester=requester or by,
        created_by=by,
        title=checked_title(title),
        kind=kind,
    )
    add_revision(request, 1, origin, content, by, authors)
    return request


def add_revision(
    request: CapacityRequest,
    number: int,
    origin: str,
    content: Mapping[str, Any],
    by: User,
    authors: Iterable[User] = (),
) -> RequestRevision:
    """The next revision; every author so far counts as an author of it."""
    revision = RequestRevision(
        request=request, number=number, origin=origin, created_by=by, **content
    )
    revision.save()
    revision.authors.set({user.pk for user in (by, *authors)})
    return revision
