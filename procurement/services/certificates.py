"""Acceptance certificates as documents: queued at signature, one per language, kept once."""

from __future__ import annotations

from django.db import transaction

from core.errors import InputError, InvalidTransition
from core.jobs import submit
from core.messages import msg
from core.models import LANGUAGE_CHOICES, StoredFile, User
from core.transitions import lock
from procurement.models import Acceptance, AcceptanceCertificate
from procurement.services.drawn import keep
from procurement.states import AcceptanceStatus

RENDER_TASK = "procurement.tasks.render_acceptance_certificate"
LANGUAGES = tuple(code for code, _name in LANGUAGE_CHOICES)
SIGNED = (AcceptanceStatus.ACCEPTED, AcceptanceStatus.PART_ACCEPTED)


def request_certificates(acceptance: Acceptance, *, by: User) -> None:
    """Queue the certificate in every language; called by the signature."""
    for language in LANGUAGES:
        request_certificate(acceptance=acceptance, language=language, by=by)


@transaction.atomic
def request_certificate(
    *, acceptance: Acceptance, language: str, by: User | None
) -> AcceptanceCertificate:
    """The certificate's row in `language`, queued when it is new. The same one twice is one row and one job."""
    if acceptance.status not in SIGNED:
        raise InvalidTransition(msg("There is no certificate before the acceptance is signed"))
    if language not in LANGUAGES:
        raise InputError(
            "language",
            msg(
                "%(value)s is not a language of certificates (%(limit)s)",
                value=language,
                limit=", ".join(LANGUAGES),
            ),
            value=language,
            limit=", ".join(LANGUAGES),
        )
    row, _new = AcceptanceCertificate.objects.get_or_create(
        acceptance=acceptance, language=language
    )
    if row.job_id is None:
        row.job = submit(RENDER_TASK, row.pk, key=f"certificate:{row.pk}", owner=by)
        row.save(update_fields=["job"])
    return row


@transaction.atomic
def attach_certificate(*, certificate_id: int, content: bytes, name: str) -> StoredFile:
    """Keep a drawn certificate. The first one stays: drawing it again changes nothing."""
    row = lock(AcceptanceCertificate.objects.select_related("acceptance"), certificate_id)
    return keep(row, content, name=name, action="acceptance.certificate_made", on=row.acceptance)
