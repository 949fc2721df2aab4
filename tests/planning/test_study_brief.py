"""The decision brief: what a CTO signs."""

from __future__ import annotations

import html
import io
import json
import re
from decimal import Decimal

import pypdf
import pytest
from django.template.loader import render_to_string

from core.errors import InputError, InvalidTransition, NotPermitted
from core.organisation import organisation
from core.templatetags.ui import money
from planning import study_brief
from planning.models import Study, StudyBrief
from planning.plan_rows import bases, brief_rows
from planning.services import briefs, plans, studies
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


def test_the_plan_put_forward_leads_the_brief_and_an_earlier_brief_stays_as_it_was(w, ready):
    before = made(ready, "en", w.requester)
    plan = next(p for p in ready.result["plans"] if not p["roles"])
    plans.choose_plan(
        revision_id=ready.revision_id, study_id=ready.pk, plan_key=plan["key"], by=w.requester
    )
    after = made(ready, "en", w.requester)

    assert after.pk != before.pk
    reader = pypdf.PdfReader(io.BytesIO(after.file.file.read()))
    flat = "".join("".join(page.extract_text() for page in reader.pages).split())
    assert len(reader.pages) <= 2
    name = "".join(f"Put forward: {plan['cards']} × {plan['accelerator']}".split())
    assert name in flat
    assert flat.index(name) < flat.index("Cheapest")
    assert "".join(money(Decimal(plan["cost"]), plan["currency"]).split()) in flat
    assert [brief.pk for brief in briefs.current_briefs(ready)] == [after.pk]
    before.refresh_from_db()
    assert before.file_id is not None


def test_the_decider_reads_the_plan_beside_the_others_before_deciding(w, ready, client):
    plan = next(p for p in ready.result["plans"] if not p["roles"])
    plans.choose_plan(
        revision_id=ready.revision_id, study_id=ready.pk, plan_key=plan["key"], by=w.requester
    )
    basis = bases([ready.revision.plan])[ready.revision.plan.pk]
    assert basis["chosen"]["name"].startswith(f"{plan['cards']} × {plan['accelerator']}")
    assert "above the cheapest" in basis["chosen"]["why"]
    assert {row["roles"] for row in basis["rows"]}
    assert len(basis["sides"]) == len(ready.result["comparison"])

    client.force_login(w.requester)
    page = client.get(ready.revision.request.get_absolute_url()).content.decode()
    assert basis["chosen"]["name"] in html.unescape(page)
    assert f"{ready.get_absolute_url()}#brief" in page


# Five English words in a row: a sentence. Names of products, of places and of data have fewer.
SENTENCE = re.compile(r"(?:\b[A-Za-z][a-z']+,? ){4,}[a-z]{2,}")


@pytest.fixture
def missing(ready):
    """The study with a first plan that may miss what is asked for."""
    plan = ready.result["plans"][0]
    plan["doubts"] = [
        {
            "template": "May miss what is asked for: it is met in the middle of its band and not at the P90",
            "params": {},
        }
    ]
    return ready


def test_no_english_sentence_is_in_a_chinese_brief(w, missing, monkeypatch):
    seen = {}
    monkeypatch.setattr(
        study_brief,
        "render_pdf",
        lambda template, context, language, **more: (
            seen.update(html=render_to_string(template, context | {"letterhead": organisation()}))
            or b"%PDF"
        ),
    )
    brief = briefs.request_brief(study_id=missing.pk, language="zh-hans", by=w.requester)
    study_brief.render_brief(StudyBrief(study=missing, language="zh-hans", plan_key=brief.plan_key))
    text = " ".join(re.sub(r"<[^>]+>", " | ", html.unescape(seen["html"])).split())
    text = text.replace(missing.revision.justification, "")  # as a person wrote it
    assert "因此" in text
    assert SENTENCE.findall(text) == []
    assert "P90" in text


def test_no_english_sentence_is_on_a_chinese_study_page(w, ready, client):
    w.requester.language = "zh-hans"
    w.requester.save()
    client.force_login(w.requester)
    page = client.get(ready.get_absolute_url(), headers={"accept-language": "zh-hans"})
    body = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", " | ", page.content.decode())
    # formulas of the trace are written in symbols and code words; data says where it is from as it was entered
    body = re.sub(r'(?s)<td class="mono small".*?</td>', " | ", body)
    text = " ".join(re.sub(r"<[^>]+>", " | ", html.unescape(body)).split())
    assert "研究" in text
    assert SENTENCE.findall(text) == []


def test_the_brief_says_what_a_plan_may_miss_and_its_band(missing):
    rows = brief_rows(missing.result)
    first = next(row for row in rows if row["warnings"])
    assert first["warnings"][0].startswith("May miss what is asked for")
    assert all(" – " in row["time_spread"] for row in rows)
