"""Shared fixtures. The network is blocked; each test file brings its own data through tests/factories.py."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection
from django.db.backends.signals import connection_created
from django.utils import translation
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

# No test holds a clock: a crowded machine finds no fault. Speed is measured by script/bench.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def _answer_before_the_disk(connection: object, **_: object) -> None:
    """What a test commits need not outlive a power cut."""
    if connection.vendor == "postgresql":  # type: ignore[attr-defined]
        with connection.cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute("SET synchronous_commit TO off")


connection_created.connect(_answer_before_the_disk)


def file_of(nodeid: str) -> str:
    """What one worker runs without a break: a file; the browser's files together, for most of their time is waiting."""
    path = nodeid.partition("::")[0]
    return "tests/e2e" if path.startswith("tests/e2e/") else path


class LongestFirst(LoadFileScheduling):
    """Files as they were collected: what waits beside what computes, and nothing long at the end, by itself."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False  # by number of tests: the longest files have few
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return file_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LongestFirst | None:
    return LongestFirst(config, log) if config.getvalue("dist") == "loadfile" else None


def longest_first(items: list[pytest.Item]) -> None:
    """The browser's files, then files with slow tests, then by number of tests; inside a file the order stays."""
    number = Counter(file_of(item.nodeid) for item in items)
    slow = Counter(file_of(item.nodeid) for item in items if item.get_closest_marker("slow"))
    items.sort(
        key=lambda item: (
            file_of(item.nodeid) != "tests/e2e",
            not slow[file_of(item.nodeid)],
            -number[file_of(item.nodeid)],
            file_of(item.nodeid),
        )
    )


@pytest.hookimpl(trylast=True)  # after those that group by database or by parameter
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`race` needs two real connections with row locks: PostgreSQL only."""
    if hasattr(config, "workerinput"):
        longest_first(items)
    if connection.vendor == "postgresql":
        return
    skip = pytest.mark.skip(reason="race tests need PostgreSQL (set DATABASE_URL)")
    for item in items:
        if item.get_closest_marker("race"):
            item.add_marker(skip)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Only this machine may be reached, and only by tests that say why (database, browser, worker)."""
    from pytest_socket import socket_allow_hosts

    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)


@pytest.fixture(autouse=True)
def _own_cache_and_files(settings: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}  # type: ignore[attr-defined]
    settings.MEDIA_ROOT = tmp_path_factory.mktemp("files")  # type: ignore[attr-defined]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # type: ignore[attr-defined]
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"  # type: ignore[attr-defined]
    settings.FIRST_PLANS_WAIT = 0  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _english():
    """Each test starts in English: a request leaves its language active in the thread."""
    translation.activate("en")
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def _documents_are_well_formed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """A document that only the slow parser reads fails the test that drew it."""
    from core import pdf

    def refuse(*, string: str, **options: object) -> None:
        pytest.fail("A print template is not well-formed XML (core/pdf.py)")

    if request.node.get_closest_marker("odd_document") is None:
        monkeypatch.setattr(pdf, "HTML", refuse)


@pytest.fixture
def organisation(db: None):
    from tests.factories import OrganisationFactory

    return OrganisationFactory()


@pytest.fixture
def team(db: None):
    from tests.factories import TeamFactory

    return TeamFactory()


@pytest.fixture
def make_user(db: None):
    """`make_user(Role.REQUESTER, team=team)` → a user who holds that role (organisation-wide without a team)."""
    from tests.factories import MembershipFactory, UserFactory

    def make(*roles, team=None, **fields):
        user = UserFactory(**fields)
        for role in roles:
            MembershipFactory(user=user, team=team, role=role)
        return user

    return make
