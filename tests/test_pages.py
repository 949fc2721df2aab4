"""What every page of a whole case says, walked link by link: no gap printed as a word of the program."""

from __future__ import annotations

import re
from collections import defaultdict
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from django.urls import Resolver404, resolve, reverse

from core.organisation import today
from procurement.services import burn_in, invoices
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
# Of each kind of page this many are opened.
SAMPLES = 2
NOT_WALKED = {"gallery", "admin", "account_logout", "set_language"}


class Words(HTMLParser):
    """The visible pieces of text of a page, its links, and which pieces stand in a dialog."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.dialogs: list[str] = []
        self.links: list[str] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("dialog", "script", "style", "code", "pre", "option", "textarea"):
            self._inside.append(tag)
        for name, value in attrs:
            if tag == "a" and name == "href" and value:
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        text = data.strip()
        if not text or {"script", "style"} & set(self._inside):
            return
        if "dialog" in self._inside:
            self.dialogs.append(text)
        elif not self._inside:
            self.texts.append(text)


@pytest.fixture
def story():
    """A delivery with faulty cards, accepted in part, and one that still burns in; an invoice, returns, an open RFQ."""
    s = b.shop()
    delivery = b.burned_in(s, b.BURN_FAULTY)
    b.accepted(s, delivery)
    invoices.capture_invoice(
        order_id=delivery.order_id, number="INV-1", dated_on=today(), currency="CNY", by=s.finance,
        lines=[{"position": 1, "quantity": "6", "unit_price": "250000", "tax_rate": "0.13"}],
        stated_tax="195000", stated_gross="1695000",
    )  # fmt: skip
    second = b.received(
        s, note_number="DN-2",
        lines=[{"position": 1, "quantity": "8", "units": b.units([f"M{n}" for n in range(8)], ())}],
    )  # fmt: skip
    runs = b.burning(s, second)
    burn_in.fail_run(run_id=runs[0].pk, reason="XID 79", by=s.engineer)
    b.opened(s)
    b.rfq(s)
    b.planning.draft(s)
    b.planning.in_review(s)
    return s


def walk(client) -> dict[str, Words]:
    """Every kind of page that can be reached from home, a few of each."""
    seen: dict[str, int] = defaultdict(int)
    pages: dict[str, Words] = {}
    queue = [reverse("home")]
    known = set(queue)
    while queue:
        address = queue.pop(0)
        try:
            name = resolve(urlsplit(address).path).view_name
        except Resolver404:
            continue
        if name.partition(":")[0] in NOT_WALKED or seen[name] >= SAMPLES:
            continue
        seen[name] += 1
        answer = client.get(address)
        if answer.status_code != 200 or "text/html" not in answer.headers["Content-Type"]:
            continue
        words = Words(answer.content.decode())
        pages[address] = words
        for link in words.links:
            if link.startswith("/") and link not in known:
                known.add(link)
                queue.append(link)
    return pages


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_no_page_and_no_dialog_prints_none(client, story, language):
    wrong, dialogs, pages_seen = [], 0, set()
    for person in (story.procurement, story.cto, story.engineer, story.finance, story.requester):
        person.language = language
        person.save()
        client.force_login(person)
        for address, words in walk(client).items():
            pages_seen.add(address)
            dialogs += len(words.dialogs) > 0
            wrong += [(address, text) for text in words.dialogs if text == "None"]
            if language != "en":  # in English the word may stand in a sentence
                wrong += [(address, text) for text in words.texts if re.search(r"\bNone\b", text)]
    assert len(pages_seen) > 40
    assert dialogs > 5
    assert wrong == []


# Names of columns of a file to import, of a tool's tests in a checklist, and facts of the trail, are what they are.
CODES_WANTED = {
    "request-import", "audit-detail", "audit-list", "telemetry-source", "telemetry-sources", "telemetry-source-new",
    "order-checklists",
}  # fmt: skip
CODE = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")


def test_no_page_shows_a_code_of_the_program(client, story):
    from catalog.reference import accelerators
    from procurement.models.evidence import EvidenceFile

    formats = set(EvidenceFile.objects.values_list("format", flat=True))  # names of tools: gpu_burn
    shown = set()
    for person in (story.procurement, story.engineer, story.requester):
        client.force_login(person)
        for address, words in walk(client).items():
            name = resolve(urlsplit(address).path).view_name
            if name in CODES_WANTED:
                continue
            for text in words.texts + words.dialogs:
                shown |= {(name, code) for code in CODE.findall(text) if code not in formats}
                shown |= {
                    (name, slug) for slug in (*accelerators(), "h100-sxm-80gb") if slug in text
                }
    assert shown == set()
