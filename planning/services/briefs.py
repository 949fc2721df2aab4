"""The decision brief: drawn once for each study and language, and made public with the study."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from core import jobs, transitions
from core.audit import record
from core.errors import InputError, InvalidTransition
from core.files import store_bytes
from core.messages import msg
from core.models import Job, StoredFile, User
from planning import policies
from planning.models.plans import PlanChoice
from planning.models.studies import Study, StudyBrief
from planning.states import StudyStatus

TEMPLATE_VERSION = 3
TASK = "planning.tasks.render_brief"
LEAST_OPTIONS = 2  # to decide between, doing nothing counted


def chosen_key(study: Study) -> str:
    """Key of the plan that was chosen from `study`; empty while none was."""
    key = PlanChoice.objects.filter(study=study).values_list("plan_key", flat=True).first()
    return key or ""


def current_briefs(study: Study) -> QuerySet[StudyBrief]:
    """The briefs of `study` as it stands: of the plan chosen now, by today's template."""
    return StudyBrief.objects.filter(
        study=study, template_version=TEMPLATE_VERSION, plan_key=chosen_key(study)
    ).select_related("job", "file")


@transaction.atomic
def request_brief(*, study_id: int, language: str, by: User | None) -> StudyBrief:
    """The brief in `language`; its drawing is queued where it is not there yet, and again where it failed."""
    if language not in dict(settings.LANGUAGES):
        raise InputError(
            "language",
            msg("%(value)s is not a language of documents", value=language),
            value=language,
            limit=", ".join(code for code, _name in settings.LANGUAGES),
        )
    study = transitions.lock(Study.objects.all(), study_id)
    if study.result is None or "schema" not in study.result:
        raise InvalidTransition(msg("The study has no result yet"))
    brief, _created = StudyBrief.objects.get_or_create(
        study=study,
        language=language,
        template_version=TEMPLATE_VERSION,
        plan_key=chosen_key(study),
    )
    if brief.file_id is None:
        job = jobs.submit(TASK, brief.pk, key=f"study-brief:{brief.pk}", owner=by)
        if job.status in (Job.Status.FAILED, Job.Status.CANCELLED):
            job = jobs.retry(job, owner=by)
        brief.job = job
        brief.save(update_fields=["job"])
    return brief


@transaction.atomic
def attach_brief(*, brief_id: int, content: bytes, name: str) -> StoredFile:
    """Keep the drawn PDF. The first one stays."""
    brief = transitions.lock(StudyBrief.objects.all(), brief_id)
    if brief.file is not None:
        return brief.file
    brief.file = store_bytes(content, name=name, content_type="application/pdf")
    brief.made_at = timezone.now()
    brief.save(update_fields=["file", "made_at"])
    study = Study.objects.light().select_related("revision__request__team").get(pk=brief.study_id)
    record("study.brief_made", on=study, by=None, team=study.revision.request.team,
           language=brief.language, sha256=brief.file.sha256)  # fmt: skip
    return brief.file


@transaction.atomic
def publish_study(*, study_id: int, by: User) -> Study:
    """Put a finished study before the deciders; its briefs are drawn in every language.

    Raises NotPermitted (the requester may not), InvalidTransition (not ready, or nothing to decide between).
    """
    study = transitions.lock(Study.objects.select_related("revision__request__team"), study_id)
    policies.require_publish(by, study)
    options = len((study.result or {}).get("plans", [])) + 1  # one is to do nothing
    if options < LEAST_OPTIONS:
        raise InvalidTransition(msg("The study has no plan to decide on"))
    transitions.advance(study, StudyStatus.PUBLISHED, by=by, action="study.published",
                        team=study.revision.request.team, options=options)  # fmt: skip
    for code, _name in settings.LANGUAGES:
        request_brief(study_id=study.pk, language=code, by=by)
    return study
