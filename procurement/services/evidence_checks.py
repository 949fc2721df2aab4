"""Evidence files on disk are still what was uploaded: checked each night, told once when not."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.files import is_intact
from core.messages import msg
from core.models import User
from core.outbox import notify
from core.roles import Role
from procurement.models import EvidenceFile
from procurement.services.measurements import tell_withdrawn
from procurement.services.run_proof import open_runs, refresh_runs

TOLD = (Role.OPERATIONS, Role.PROCUREMENT, Role.AUDITOR)


def check_evidence() -> list[EvidenceFile]:
    """Compare every file not yet known as altered with its hash. Returns those found altered or missing now."""
    return [
        evidence
        for evidence in EvidenceFile.objects.filter(altered_at=None)
        .select_related("file", "delivery__vendor")
        .defer("result")
        .order_by("pk")
        .iterator(chunk_size=100)
        if not is_unaltered(evidence) and _mark(evidence)
    ]


def is_unaltered(evidence: EvidenceFile) -> bool:
    """Whether the bytes on disk have the hash noted at upload. A missing file has not."""
    try:
        return evidence.sha256 == evidence.file.sha256 and is_intact(evidence.file)
    except OSError:
        return False


@transaction.atomic
def _mark(evidence: EvidenceFile) -> bool:
    """Note the alarm and tell those who answer for evidence; False when another check was faster."""
    now = timezone.now()
    if not EvidenceFile.objects.filter(pk=evidence.pk, altered_at=None).update(altered_at=now):
        return False
    evidence.altered_at = now
    record("evidence.altered", on=evidence, by=None, sha256=evidence.sha256)
    tell_withdrawn(evidence)
    refresh_runs(open_runs(evidence.delivery))
    people = User.objects.filter(
        is_active=True, memberships__team=None, memberships__role__in=TOLD
    ).distinct()
    notify(
        list(people),
        "evidence.altered",
        on=evidence,
        message=msg(
            "The evidence file %(name)s of delivery %(delivery)s is not what was uploaded.",
            name=str(evidence),
            delivery=evidence.delivery.note_number,
        ),
        url=evidence.get_absolute_url(),
    )
    return True
