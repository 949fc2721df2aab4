"""The decision brief: what a CTO signs."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pypdf
import pytest

from core.errors import InputError, InvalidTransition, NotPermitted
from core.templatetags.ui import money
from planning.models import Study, StudyBrief
from planning.services import briefs, studies
from planning.states import StudyStatus
from planning.study_brief import render_brief as draw
from planning.tasks import render_brief, run_study
from tests.planning import builders

TERMS = {"interruptible": True, "checkpoint_seconds": 1800, "duration_days": 14}


@pytest.fixture
def w(db):
    return builders.world()


@pytest.fixture
def ready(w):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    run_study(str(study.job.pk))
    return Study.objects.get(pk=study.pk)


def made(study, language, by):
    brief = briefs.request_brief(study_id=study.pk, language=language, by=by)
    render_brief(str(brief.job.pk))
    return StudyBrief.objects.select_related("file", "study__revision__request__team").get(
        pk=brief.pk
    )


@pytest.mark.parametrize(("language", "word"), [("en", "Decision"), ("zh-hans", "决策")])
def test_it_has_at_most_two_pages_and_the_figures_of_the_study(w, ready, language, word):
    brief = made(ready, language, w.requester)

    reader = pypdf.PdfReader(io.BytesIO(brief.file.file.read()))
    text = "".join(page.extract_text() for page in reader.pages)
    flat = "".join(text.split())
    assert len(reader.pages) <= 2
    assert word in text
    cheapest = next(p for p in ready.result["plans"] if "cheapest" in p["roles"])
    assert "".join(money(Decimal(cheapest["cost"]), cheapest["currency"]).split()) in flat
    assert "".join(cheapest["accelerator"].split()) in flat
    attached = json.loads(reader.attachments["study.json"][0])
    assert attached["plans"][0]["key"] == ready.result["plans"][0]["key"]


def test_it_is_drawn_once_and_the_same_again(w, ready):
    brief = made(ready, "en", w.requester)
    first = brief.file_id
    again = briefs.request_brief(study_id=ready.pk, language="en", by=w.lead)
    briefs.attach_brief(brief_id=brief.pk, content=b"%PDF other", name="x.pdf")

    assert again.pk == brief.pk
    brief.refresh_from_db()
    assert brief.file_id == first
    assert draw(brief) == draw(brief)


def test_what_is_refused(w, ready):
    with pytest.raises(InputError):
        briefs.request_brief(study_id=ready.pk, language="fr", by=w.requester)
    running = Study.objects.create(revision=ready.revision, inputs_hash="0" * 64)
    with pytest.raises(InvalidTransition):
        briefs.request_brief(study_id=running.pk, language="en", by=w.requester)
    with pytest.raises(NotPermitted):
        briefs.publish_study(study_id=ready.pk, by=w.requester)
    with pytest.raises(InvalidTransition):
        briefs.publish_study(study_id=running.pk, by=w.procurement)


def test_publishing_freezes_a_brief_in_every_language(w, ready):
    study = briefs.publish_study(study_id=ready.pk, by=w.procurement)
    assert study.status == StudyStatus.PUBLISHED
    assert set(study.briefs.values_list("language", flat=True)) == {"en", "zh-hans"}
