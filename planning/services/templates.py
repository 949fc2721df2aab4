"""Templates of a team: content kept under a name, and drafts made from it."""

from __future__ import annotations

from datetime import date, timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition, NotPermitted
from core.messages import msg
from core.models import User
from core.organisation import local_day, today
from planning import policies
from planning.models.requests import CapacityRequest, Origin
from planning.models.templates import RequestTemplate
from planning.services.request_content import (
    TERMS,
    checked_content,
    new_draft,
    open_team,
)

DATES = ("need_by", "start")


@transaction.atomic
def save_template(*, request_id: int, name: str, by: User) -> RequestTemplate:
    """Keep what the current revision asks for as a template of its team. Raises NotPermitted or InputError."""
    request = CapacityRequest.objects.select_related("team").get(pk=request_id)
    if not policies.can_copy(by, request):
        raise NotPermitted(on=request)
    name = " ".join(name.split())
    if not 1 <= len(name) <= 120:
        raise InputError(
            "name", msg("A name has 1 to %(limit)s characters", limit=120), value=name[:140],
            limit=120,
        )  # fmt: skip
    revision = request.current
    made_on = local_day(revision.created_at)
    try:
        with transaction.atomic():
            template = RequestTemplate.objects.create(
                team=request.team,
                name=name,
                title=request.title,
                kind=request.kind,
                workload=revision.workload,
                terms={key: getattr(revision, key) for key in TERMS if key not in DATES},
                lead_days=max((revision.need_by - made_on).days, 0),
                made_from=request,
                created_by=by,
            )
    except IntegrityError:
        raise InputError(
            "name", msg("%(team)s has a template of this name", team=str(request.team)), value=name
        ) from None
    record("request_template.saved", on=template, by=by, request=request.pk, name=name)
    return template


@transaction.atomic
def draft_from_template(
    *, template_id: int, by: User, need_by: date | None = None, title: str = ""
) -> CapacityRequest:
    """A draft with the template's content, checked as if typed today. Raises NotPermitted, InputError or
    WorkloadErrors."""
    template = RequestTemplate.objects.in_use().get(pk=template_id)
    team = open_team(template.team_id, by)
    terms = {**template.terms, "need_by": need_by or today() + timedelta(days=template.lead_days)}
    request = new_draft(
        team=team,
        kind=template.kind,
        title=title or template.title,
        content=checked_content(template.kind, template.workload, terms),
        origin=Origin.TEMPLATE,
        by=by,
    )
    record("request.created", on=request, by=by, kind=request.kind, template=template.pk)
    return request


@transaction.atomic
def retire_template(*, template_id: int, by: User) -> RequestTemplate:
    """Take a template out of use. Raises NotPermitted or InvalidTransition."""
    template = (
        RequestTemplate.objects.select_for_update(of=("self",))
        .select_related("team")
        .get(pk=template_id)
    )
    if not policies.can_create(by, template.team_id):
        raise NotPermitted(on=template)
    if template.retired_at is not None:
        raise InvalidTransition(msg("This template is out of use already"))
    template.retired_at = timezone.now()
    template.save(update_fields=["retired_at"])
    record("request_template.retired", on=template, by=by)
    return template
