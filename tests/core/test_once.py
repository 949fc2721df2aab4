"""A form sent twice makes one thing, by page and by API; eight at once too (PostgreSQL)."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from drf_spectacular.generators import SchemaGenerator

from core.models import AuditEntry, IdempotencyKey
from core.once import KEEP, content_digest, forget_old
from core.organisation import today
from planning.models import CapacityRequest
from tests.planning import builders

TOKEN = re.compile(r'name="once" value="([\w-]+)"')


@pytest.fixture
def w(db):
    return builders.world()


@pytest.fixture
def client(w):
    return signed_in(w.requester)


def signed_in(user):
    client = Client()
    client.force_login(user)
    return client


def address():
    return reverse("request-create", args=["lora"])


def typed(w, client, **values):
    """A new request as the form would send it, with the token of the page."""
    tokens = TOKEN.findall(client.get(address()).content.decode())
    return {
        "team": w.team.pk, "title": "Tune", "need_by": (today() + timedelta(days=30)).isoformat(),
        "model": "llama-3.1-8b", "tokens": "300M", "method": "lora", "precision": "bf16",
        "data_residence": "anywhere", "justification": "Needed.", "once": tokens[-1], **values,
    }  # fmt: skip


def test_each_form_bears_a_token_of_its_own(client):
    tokens = TOKEN.findall(client.get(address()).content.decode())
    again = TOKEN.findall(client.get(address()).content.decode())
    assert len(tokens) >= 2
    assert len({*tokens, *again}) == len(tokens) + len(again)


def test_the_second_sending_leads_to_what_the_first_made(w, client):
    body = typed(w, client)
    first = client.post(address(), body)
    second = client.post(address(), body, follow=True)
    made = CapacityRequest.objects.get()
    assert first["Location"] == made.get_absolute_url()
    assert second.redirect_chain == [(made.get_absolute_url(), 302)]
    assert "taken once" in second.content.decode()


def test_a_refused_form_can_be_mended_and_sent_again(w, client):
    body = typed(w, client)
    assert client.post(address(), body | {"tokens": "many"}).status_code == 422
    assert not IdempotencyKey.objects.exists()
    assert client.post(address(), body).status_code == 302


def test_a_form_changed_after_going_back_is_a_new_one(w, client):
    body = typed(w, client)
    client.post(address(), body)
    client.post(address(), body | {"title": "Tune another"})
    assert CapacityRequest.objects.count() == 2


def test_the_token_of_somebody_else_means_nothing(w, client):
    body = typed(w, client)
    client.post(address(), body)
    assert signed_in(w.lead).post(address(), body).status_code == 302
    assert CapacityRequest.objects.count() == 2


def test_a_refusal_is_still_a_page_and_recorded(w, client):
    client.post(address(), typed(w, client))
    found = CapacityRequest.objects.get()
    step = reverse("request-step", args=[found.pk, "start_sourcing"])
    before = IdempotencyKey.objects.count()
    answer = client.post(step, {"once": "x" * 22, "version": found.version})
    assert answer.status_code == 403
    assert AuditEntry.objects.filter(action="permission.denied").exists()
    assert IdempotencyKey.objects.count() == before


def test_a_refusal_told_on_the_next_page_keeps_no_key(w):
    """The first answer may be lost to a double click: the second must not say that the form was taken."""
    client = signed_in(w.lead)
    step = builders.in_review(w).current.steps.get()
    body = {"decision": "reject", "reason": "", "seen_hash": step.content_hash, "once": "z" * 22}
    for _ in range(2):
        answer = client.post(reverse("approval-decide", args=[step.pk]), body, follow=True)
        assert "taken once" not in answer.content.decode()
    assert not IdempotencyKey.objects.exists()
    body |= {"reason": "Too large for what it does."}
    client.post(reverse("approval-decide", args=[step.pk]), body)
    step.refresh_from_db()
    assert step.votes.count() == 1


def test_views_of_log_in_keep_their_own_rules_and_nothing_that_was_typed(w):
    client = signed_in(w.lead)
    again = client.post("/accounts/2fa/recovery-codes/generate/", {"once": "r" * 22})
    assert again.status_code == 302
    assert "reauthenticate" in again["Location"]
    w.lead.set_password("an old pass phrase 1")
    w.lead.save()
    client.force_login(w.lead)
    changed = client.post(
        "/accounts/password/change/",
        {
            "oldpassword": "an old pass phrase 1", "password1": "a new pass phrase 2",
            "password2": "a new pass phrase 2", "once": "p" * 22,
        },
    )  # fmt: skip
    assert changed.status_code == 302
    w.lead.refresh_from_db()
    assert w.lead.check_password("a new pass phrase 2")
    assert not IdempotencyKey.objects.exists()


def test_a_digest_tells_nothing_without_the_secret(settings):
    before = content_digest("typed", MultiValueDict())
    assert before == content_digest("typed", MultiValueDict())
    settings.SECRET_KEY = "another secret of this installation, long enough"
    assert before != content_digest("typed", MultiValueDict())


def test_a_choice_kept_in_a_cookie_is_answered_each_time(client):
    body = {"theme": "dark", "next": "/", "once": "y" * 22}
    for _ in range(2):
        assert client.post("/theme/", body).cookies["theme"].value == "dark"


def test_old_tokens_are_forgotten(w):
    for key, age in (("old", KEEP + timedelta(days=1)), ("new", timedelta(days=1))):
        IdempotencyKey.objects.create(
            user=w.lead, key=key, path="/", body_sha256="", created_at=timezone.now() - age
        )
    assert forget_old() == 1
    assert IdempotencyKey.objects.get().key == "new"


# Calls that make something and take no Idempotency-Key, each with its reason.
NOT_KEYED = {
    "/api/v1/me/api-key/": "a secret is shown once and kept nowhere",
    "/api/v1/telemetry/sources/{id}/token/": "a secret is shown once and kept nowhere",
    "/api/v1/procurement/deliveries/{id}/evidence/": "the same file of a delivery is kept once",
    "/api/v1/procurement/deliveries/{id}/live-token/": "a secret is shown once and kept nowhere",
    "/api/v1/procurement/rfqs/{id}/vendor-keys/{vendor}/": "a secret is shown once and kept nowhere",
}


def test_each_call_that_makes_something_takes_a_key():
    generator = SchemaGenerator()
    paths = generator.get_schema(public=True)["paths"]
    generator._initialise_endpoints()
    open_ones = set()
    for path, _, method, view in generator._get_paths_and_endpoints():
        if method != "POST" or "201" not in paths[path]["post"]["responses"]:
            continue
        if not getattr(type(view).post, "is_idempotent", False):
            open_ones.add(path)
    assert open_ones == set(NOT_KEYED)


def test_a_key_stands_for_the_content_of_a_file(w):
    found = builders.draft(w)
    path = reverse("api-request-files", args=[found.pk])
    client = signed_in(w.requester)

    def send(content):
        upload = SimpleUploadedFile("a.txt", content)
        return client.post(path, {"file": upload, "note": ""}, headers={"Idempotency-Key": "one"})

    assert [send(b"first").status_code for _ in range(2)] == [201, 201]
    assert send(b"other").status_code == 422
    assert found.attachments.count() == 1


def eight_at_once(work: Callable[[], int]) -> list[int]:
    barrier = Barrier(8)

    def one(_: int) -> int:
        barrier.wait()
        try:
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, range(8)))


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_eight_sendings_at_once_make_one_draft():
    w = builders.world()
    body = typed(w, signed_in(w.requester))
    assert (
        eight_at_once(lambda: signed_in(w.requester).post(address(), body).status_code) == [302] * 8
    )
    assert CapacityRequest.objects.count() == 1


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_eight_calls_at_once_with_one_key_make_one_draft():
    w = builders.world()
    body = {
        "team": w.team.slug, "kind": "lora", "title": "By API", "workload": builders.LORA,
        "need_by": (today() + timedelta(days=30)).isoformat(), "justification": "Needed.",
    }  # fmt: skip

    def call() -> int:
        return signed_in(w.requester).post(
            reverse("api-requests"), body, content_type="application/json",
            headers={"Idempotency-Key": "one"},
        ).status_code  # fmt: skip

    assert eight_at_once(call) == [201] * 8
    assert CapacityRequest.objects.count() == 1
