"""The demo's past: what it leaves behind, who did it, and that no page breaks on it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta
from html import unescape

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from catalog import reference
from core.models import AuditEntry, Job, Notice, User
from planning.models import Allocation, Budget, CapacityRequest, CapacityReview, Study
from planning.models.month_one import MonthOneReview
from planning.selectors.budgets import balances
from planning.services.freshness import outdate_studies
from planning.services.ledger_proof import prove_ledger
from procurement import models as m

pytestmark = pytest.mark.slow

PEOPLE = ("lin", "ming", "chen", "he", "wu", "zhao", "sun", "admin")
LINK = re.compile(r'<a\b[^>]*?\shref="(/[^"#]*)')
SLUGS = frozenset(reference.accelerators()) | frozenset(reference.architectures())
# a word with a hyphen that is no part of a path or an address
NAME = re.compile(r"(?<![\w./-])[a-z0-9][a-z0-9.-]*-[a-z0-9.-]*[a-z0-9](?![\w/-])")
ELSEWHERE = re.compile(r"^/(accounts|api|support|static)/")


def states(model: type) -> dict[str, int]:
    return dict(Counter(model.objects.values_list("status", flat=True)))  # type: ignore[attr-defined]


def check_what_is_there(now: datetime) -> None:
    """What every load leaves, whatever the day."""
    assert states(CapacityRequest) == {
        "draft": 1, "in_review": 1, "changes_requested": 1, "approved": 1, "sourcing": 3, "fulfilled": 1, "rejected": 1,
    }  # fmt: skip
    assert states(m.Rfq) == {"awarded": 2, "opened": 1, "open": 1}
    assert states(m.Quote) == {"selected": 2, "not_selected": 2, "submitted": 5}
    assert states(m.PurchaseOrder) == {"acknowledged": 2}
    assert states(m.Delivery) == {"posted": 1, "expected": 1}
    assert states(m.Asset) == {"in_service": 7, "at_vendor": 1}
    assert states(m.BurnInRun) == {"passed": 7, "failed": 1}
    assert states(m.Acceptance) == {"part_accepted": 1}
    assert states(m.Rma) == {"shipped": 1}
    assert states(m.Invoice) == {"paid": 1}
    assert states(Allocation) == {"booked": 1}
    assert {file.verdict for file in m.EvidenceFile.objects.all()} == {"pass", "fail"}
    assert not any(file.flags for file in m.EvidenceFile.objects.all())
    assert {run.covered_seconds for run in m.BurnInRun.objects.filter(status="passed")} == {259_200}
    review = MonthOneReview.objects.get()
    assert (review.finding, review.status) == ("fits", "open")
    ended = CapacityReview.objects.filter(status="data_frozen")
    assert ended.exists()
    assert all(
        one.snapshots.count() == 1 and one.reports_count == 2 for one in map(_with_reports, ended)
    )
    assert CapacityReview.objects.filter(status="scheduled").count() == 1
    # An approver can decide on what waits: its study holds, and it has both briefs on order.
    study = Study.objects.get(revision__request__status="in_review")
    assert study.status == "published"
    assert study.briefs.count() == 2
    assert outdate_studies() == 0
    assert prove_ledger() == []
    assert all(sums.available >= 0 for sums in balances(Budget.objects.all()).values())
    moments = list(AuditEntry.objects.order_by("pk").values_list("at", flat=True))
    assert moments == sorted(moments), "the trail is in the order of time"
    assert moments[0] < now - timedelta(days=120)
    assert moments[-1] <= now
    assert set(Job.objects.exclude(status="done").values_list("status", flat=True)) == {"queued"}
    assert not Notice.objects.exclude(mail_at=None).exists()


def _with_reports(review: CapacityReview) -> CapacityReview:
    review.reports_count = review.snapshots.get().reports.count()  # type: ignore[attr-defined]
    return review


@pytest.fixture(scope="module")
def loaded(django_db_setup, django_db_blocker, tmp_path_factory):
    """The demo, once for the module; each test's own changes are undone as usual."""
    folder = tmp_path_factory.mktemp("demo-files")
    hashers = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with django_db_blocker.unblock(), transaction.atomic():
        with override_settings(MEDIA_ROOT=folder, PASSWORD_HASHERS=hashers):
            call_command("load_demo_history")
        yield folder
        transaction.set_rollback(True)


@pytest.fixture
def demo(loaded, db, settings):
    settings.MEDIA_ROOT = loaded


def test_every_room_has_something_in_it(demo):
    check_what_is_there(timezone.now())


def test_a_second_run_changes_nothing(demo):
    before = AuditEntry.objects.count(), Job.objects.count(), Notice.objects.count()
    call_command("load_demo_history", "--if-empty")
    assert (AuditEntry.objects.count(), Job.objects.count(), Notice.objects.count()) == before
    with pytest.raises(CommandError, match="exists already"):
        call_command("load_demo_history")


def test_duties_are_separate(demo):
    """Spot checks on who did what; the services hold it, the demo must not have gone round them."""
    for request in CapacityRequest.objects.exclude(status="draft"):
        voters = {v.voter_id for step in request.current.steps.all() for v in step.votes.all()}
        assert request.requester_id not in voters
    for award in m.Award.objects.all():
        assert award.decided_by_id not in (None, award.proposed_by_id, award.rfq.owner_id)
    acceptance = m.Acceptance.objects.get()
    operators = set(m.BurnInRun.objects.values_list("operator_id", flat=True))
    assert acceptance.decided_by_id not in {acceptance.proposed_by_id, *operators}
    invoice = m.Invoice.objects.get()
    assert invoice.approved_by_id != invoice.matched_by_id
    assert not AuditEntry.objects.filter(action__startswith="denied").exists()


def test_what_is_sealed_is_sealed(demo, client):
    rfq = m.Rfq.objects.get(status="open")
    assert rfq.sealed
    assert rfq.quotes.count() == 2
    client.force_login(User.objects.get(email="wu@demo.example"))
    assert "112,000" not in client.get(f"/procurement/rfqs/{rfq.pk}/").text


@pytest.mark.parametrize("who", PEOPLE)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_no_page_breaks(demo, client, who, language):
    """Every link leads somewhere, from Home on, and names are shown, not short names; each object of the demo is a page
    of its own here."""
    client.force_login(User.objects.get(email=f"{who}@demo.example"))
    client.cookies["django_language"] = language
    walls, slugs, kinds = [], [], Counter()
    for path, shown_on, answer in pages(client, 3 if language == "en" else 1, kinds):
        if answer.status_code != 200:
            walls.append((path, answer.status_code, shown_on))
        elif answer.get("Content-Type", "").startswith("text/html"):
            slugs += [(path, slug) for slug in slugs_in(answer.content.decode())]
    assert walls == []
    assert slugs == []
    assert len(kinds) > 10


def pages(client, most, kinds):
    """(path, where it was linked, answer) of every kind of page that Home leads to, `most` of each."""
    queue, seen = [("/", "")], set()
    while queue:
        path, shown_on = queue.pop()
        kind = re.sub(
            r"\d+", "#", re.sub(r"^(/catalogue/[a-z-]+/)[^/]+/", r"\1x/", path.split("?")[0])
        )
        if path in seen or kinds[kind] >= most:
            continue
        seen.add(path)
        kinds[kind] += 1
        answer = client.get(path, follow=True)
        yield path, shown_on, answer
        if answer.status_code == 200 and answer.get("Content-Type", "").startswith("text/html"):
            queue += [
                (target, path)
                for target in map(unescape, LINK.findall(answer.content.decode()))
                if not ELSEWHERE.match(target)
            ]


def slugs_in(page):
    """Short names of accelerators and models in what a person reads; a field that asks for one may give an example."""
    text = re.sub(r"<(script|style|datalist|textarea)\b.*?</\1>", " ", page, flags=re.S)
    text = re.sub(r'<(\w+)[^>]*\bclass="[^"]*\bhelp\b[^"]*".*?</\1>', " ", text, flags=re.S)
    words = set(NAME.findall(unescape(re.sub(r"<[^>]*>", " ", text))))
    return sorted(words & SLUGS)
