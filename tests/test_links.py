"""Nobody is led into a wall: every link that a page shows leads somewhere, for the one who reads it."""

from __future__ import annotations

import re
from html import unescape

import pytest

from procurement.models import Rma
from tests.procurement import builders as b

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

LINK = re.compile(r'<a\b[^>]*?\shref="(/[^"#]*)')
ELSEWHERE = re.compile(r"^/(accounts|api|support|static)/")
PEOPLE = ("requester", "lead", "cto", "finance", "procurement", "operations", "auditor", "admin")
MOST = 400  # addresses; a list that links to a new kind of page without end would show here


def kind(path: str) -> str:
    """Addresses that differ only in the object are one kind of page."""
    path = re.sub(r"^(/catalogue/[a-z-]+/)[^/]+/", r"\1x/", path.split("?")[0])
    return re.sub(r"\d+", "#", path)


@pytest.fixture
def world():
    """A case that went the whole way: cards accepted, one sent back."""
    shop = b.shop()
    delivery = b.burned_in(shop, b.BURN_FAULTY)
    b.accepted(shop, delivery)
    assert Rma.objects.exists()
    return shop


@pytest.mark.parametrize("who", PEOPLE)
def test_every_link_leads_somewhere(world, client, who):
    client.force_login(getattr(world, who))
    queue, seen, walls = [("/", "")], set(), []
    while queue:
        path, shown_on = queue.pop()
        if kind(path) in seen:
            continue
        seen.add(kind(path))
        assert len(seen) < MOST
        answer = client.get(path, follow=True)
        if answer.status_code != 200:
            walls.append((path, answer.status_code, shown_on))
            continue
        if not answer.get("Content-Type", "").startswith("text/html"):
            continue
        queue += [
            (target, path)
            for target in map(unescape, LINK.findall(answer.content.decode()))
            if not ELSEWHERE.match(target)
        ]
    assert walls == []
    assert len(seen) > 10
