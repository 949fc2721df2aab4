"""The certificate says what was signed, carries its evidence, and is not drawn over an altered file."""

from __future__ import annotations

import io
import re

import pytest
from django.utils import translation
from pypdf import PdfReader

from core.errors import InputError, InvalidTransition
from core.models import Job
from procurement import certificate as document
from procurement.models import AcceptanceCertificate
from procurement.services import certificates
from procurement.tasks import render_acceptance_certificate
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


def certificate(acceptance, language="en"):
    return AcceptanceCertificate.objects.select_related("acceptance__delivery__order__vendor").get(
        acceptance=acceptance, language=language
    )


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_it_names_units_reasons_and_hashes_and_carries_the_files(language):
    s = b.shop()
    delivery = b.burned_in(s, b.BURN_FAULTY)
    acceptance = b.accepted(s, delivery)
    row = certificate(acceptance, language)
    pdf = PdfReader(io.BytesIO(document.render_certificate(row)))
    text = "".join(page.extract_text() for page in pdf.pages)
    squeezed = text.replace(" ", "").replace("\n", "")
    (file,) = delivery.evidence.all()
    with translation.override(language):
        heading = translation.gettext("Evidence index")
    for words in (acceptance.number, b.SERIALS[0], b.SERIALS[3], "Failedits", file.sha256, acceptance.content_hash,
                  heading.replace(" ", ""), s.engineer.name.replace(" ", ""), s.cto.name.replace(" ", "")):  # fmt: skip
        assert words in squeezed, words
    assert pdf.attachments[b.BURN_FAULTY.name] == [b.BURN_FAULTY.read_bytes()]
    metadata = pdf.trailer["/Root"]["/Metadata"].get_data().decode()
    assert re.search(r'pdfaid:part(?:>|=")3', metadata)  # PDF/A-3: it keeps with its files inside


def test_the_signature_queues_one_document_per_language_and_drawing_twice_keeps_the_first():
    s = b.shop()
    acceptance = b.accepted(s)
    assert set(acceptance.certificates.values_list("language", flat=True)) == {"en", "zh-hans"}
    certificates.request_certificates(acceptance, by=s.cto)
    assert Job.objects.filter(key__startswith="certificate:").count() == 2
    row = certificate(acceptance)
    render_acceptance_certificate(str(row.job_id))
    row.refresh_from_db()
    first = row.file.sha256
    assert row.file.content_type == "application/pdf"
    kept = certificates.attach_certificate(certificate_id=row.pk, content=b"other", name="x.pdf")
    assert kept.sha256 == first


def test_no_certificate_before_the_signature_nor_in_another_language():
    s = b.shop()
    proposal = b.proposed_acceptance(s)
    with pytest.raises(InvalidTransition):
        certificates.request_certificate(acceptance=proposal, language="en", by=s.cto)
    acceptance = b.acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto)
    with pytest.raises(InputError):
        certificates.request_certificate(acceptance=acceptance, language="fr", by=s.cto)


def test_an_altered_file_stops_the_certificate():
    s = b.shop()
    acceptance = b.accepted(s)
    file = acceptance.delivery.evidence.get().file
    with file.file.open("r+b") as content:
        content.write(b"OK")
    row = certificate(acceptance)
    render_acceptance_certificate(str(row.job_id))
    row.refresh_from_db()
    assert row.file is None
    assert row.job.status == Job.Status.FAILED
    assert b.BURN_PASSED.name in str(row.job.error)


def test_a_large_file_is_named_and_not_attached(monkeypatch):
    monkeypatch.setattr(document, "MAX_EMBEDDED_FILE", 10)
    acceptance = b.accepted(b.shop())
    pdf = PdfReader(io.BytesIO(document.render_certificate(certificate(acceptance))))
    text = "".join(page.extract_text() for page in pdf.pages).replace("\n", " ")
    assert not pdf.attachments
    assert "not attached" in text
