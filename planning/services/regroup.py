"""One draft into several by shares, several drafts into one. Volume is divided and added up, nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from planning import policies
from planning.models.requests import CapacityRequest, Origin, RequestRevision
from planning.models.templates import Relation, RequestLink
from planning.services.moves import lock_request, move
from planning.services.request_content import TERMS, checked_content, new_draft, open_team
from planning.states import RequestStatus
from planning.workloads import VOLUME, whole

MOST_PARTS = 10
WHOLE = Decimal(100)


def _lock_draft(
    request_id: int, by: User, action: str, version: int | None = None
) -> CapacityRequest:
    request = lock_request(request_id, version)
    policies.require_action(by, action, request)
    return request


@transaction.atomic
def split_request(
    *, request_id: int, shares: Sequence[Decimal], by: User, version: int | None = None
) -> list[CapacityRequest]:
    """Divide a draft into drafts of `shares` per cent of its volume (tokens, requests a day, GPU hours …).

    The shares sum to exactly 100. All else is as in the original, which ends; whoever wrote it counts as an author of
    every part. Raises NotPermitted, InvalidTransition, StaleData or InputError.
    """
    request = _lock_draft(request_id, by, "split", version)
    if not 2 <= len(shares) <= MOST_PARTS:
        raise InputError(
            "shares", msg("Give 2 to %(limit)s shares", limit=MOST_PARTS), value=len(shares),
            limit=f"2 … {MOST_PARTS}",
        )  # fmt: skip
    total = sum(shares, Decimal(0))
    if any(not share.is_finite() or share <= 0 for share in shares) or total != WHOLE:
        raise InputError(
            "shares",
            msg("The shares must be above 0 and sum to exactly 100 %%; they sum to %(sum)s",
                sum=str(total)),
            value=", ".join(str(share) for share in shares), limit=100,
        )  # fmt: skip
    revision = request.current
    authors = [*revision.authors.all(), request.requester, request.created_by]
    field = VOLUME[request.kind]
    parts = []
    for number, (share, volume) in enumerate(
        zip(shares, divide(revision.workload[field], shares), strict=True), start=1
    ):
        workload = {**revision.workload, field: volume}
        part = new_draft(
            team=open_team(request.team_id, by),
            kind=request.kind,
            title=f"{request.title[:150]} ({number}/{len(shares)})",
            content=checked_content(request.kind, workload, _terms(revision)),
            origin=Origin.SPLIT,
            by=by,
            requester=request.requester,
            authors=authors,
        )
        RequestLink.objects.create(
            source=request, target=part, relation=Relation.SPLIT, share=share
        )
        record("request.created", on=part, by=by, kind=part.kind, split_from=request.pk)
        parts.append(part)
    move(
        request, RequestStatus.CANCELLED, by=by, action="request.split",
        parts=[part.pk for part in parts], shares=[str(share) for share in shares],
    )  # fmt: skip
    return parts


def divide(volume: float, shares: Sequence[Decimal]) -> list[float]:
    """`volume` by per cent; a whole number stays whole in each part, and the parts add up to it."""
    exact = Decimal(repr(volume)) if isinstance(volume, float) else Decimal(volume)
    whole = exact == exact.to_integral_value()
    parts: list[Decimal] = []
    for share in shares[:-1]:
        part = exact * share / WHOLE
        parts.append(part.to_integral_value() if whole else part)
    parts.append(exact - sum(parts))
    return [float(part) for part in parts]


def _terms(revision: RequestRevision) -> dict[str, Any]:
    return {name: getattr(revision, name) for name in TERMS}


@transaction.atomic
def merge_requests(*, request_ids: Sequence[int], by: User, title: str = "") -> CapacityRequest:
    """Make one draft of several of the same team and kind that differ in volume, date and reason alone.

    Volumes are added, the earliest dates count, the reasons stand one below the other; the sources end. Raises
    NotPermitted, InvalidTransition or InputError naming what differs.
    """
    ids = sorted(set(request_ids))
    if not 2 <= len(ids) <= MOST_PARTS:
        raise InputError(
            "requests", msg("Choose 2 to %(limit)s drafts", limit=MOST_PARTS), value=len(ids),
            limit=f"2 … {MOST_PARTS}",
        )  # fmt: skip
    sources = [_lock_draft(pk, by, "merge") for pk in ids]
    first = sources[0]
    for other in sources[1:]:
        if (other.team_id, other.kind) != (first.team_id, first.kind):
            raise InputError(
                "requests", msg("Only drafts of the same team and kind can be merged"),
                value=other.reference,
            )  # fmt: skip
    revisions = [source.current for source in sources]
    field = VOLUME[first.kind]
    _refuse_differences(revisions, field)
    total = sum(Decimal(repr(revision.workload[field])) for revision in revisions)
    starts = [revision.start for revision in revisions if revision.start is not None]
    reasons = dict.fromkeys(
        revision.justification.strip() for revision in revisions if revision.justification.strip()
    )
    terms = {
        **_terms(revisions[0]),
        "need_by": min(revision.need_by for revision in revisions),
        "start": min(starts) if len(starts) == len(revisions) else None,
        "justification": "\n\n".join(reasons),
    }
    workload = {**revisions[0].workload, field: float(total)}
    people = [
        person
        for source, revision in zip(sources, revisions, strict=True)
        for person in (*revision.authors.all(), source.requester, source.created_by)
    ]
    merged = new_draft(
        team=open_team(first.team_id, by),
        kind=first.kind,
        title=title or first.title,
        content=checked_content(first.kind, workload, terms),
        origin=Origin.MERGED,
        by=by,
        authors=people,
    )
    record("request.created", on=merged, by=by, kind=merged.kind, merged_from=ids)
    for source in sources:
        RequestLink.objects.create(source=source, target=merged, relation=Relation.MERGED)
        move(source, RequestStatus.CANCELLED, by=by, action="request.merged", into=merged.pk)
    return merged


def _refuse_differences(revisions: Sequence[RequestRevision], volume: str) -> None:
    """Two drafts that ask for different things are not one."""
    free = {"need_by", "start", "justification", "workload"}

    def fixed(revision: RequestRevision) -> dict[str, Any]:
        content = revision.content()
        load = {name: value for name, value in whole(revision.workload).items() if name != volume}
        return {**{name: value for name, value in content.items() if name not in free}, **load}

    wanted = fixed(revisions[0])
    for other in revisions[1:]:
        found = fixed(other)
        for name in dict.fromkeys([*wanted, *found]):
            if wanted.get(name) != found.get(name):
                raise InputError(
                    name,
                    msg("%(field)s differs: %(left)s and %(right)s; make them equal first",
                        field=name, left=str(wanted.get(name, "–"))[:60],
                        right=str(found.get(name, "–"))[:60]),
                    value=str(found.get(name))[:60], limit=str(wanted.get(name))[:60],
                )  # fmt: skip
