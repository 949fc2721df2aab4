"""A person's key to the API."""

import pytest
from django.urls import reverse
from rest_framework.authtoken.models import Token

from core.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(organisation, make_user):
    return make_user(name="Ada Chen")


def with_key(client, key):
    client.logout()
    return client.get(reverse("api-me"), HTTP_AUTHORIZATION=f"Token {key}").status_code


def test_a_key_is_shown_once_replaced_and_revoked(client, user):
    client.force_login(user)
    page = client.post(reverse("token-issue"))
    first = Token.objects.get(user=user).key
    assert first in page.content.decode()
    assert page["Cache-Control"] == "private, no-store"
    assert first not in client.get(reverse("preferences")).content.decode()

    client.post(reverse("token-issue"))
    second = Token.objects.get(user=user).key
    assert with_key(client, first) in {401, 403}
    assert with_key(client, second) == 200

    client.force_login(user)
    client.post(reverse("token-revoke"))
    assert with_key(client, second) in {401, 403}
    actions = AuditEntry.objects.filter(actor=user).order_by("pk").values_list("action", "data")
    assert [row[0] for row in actions] == [
        "api_token.issued",
        "api_token.issued",
        "api_token.revoked",
    ]
    assert not any(first in str(row) or second in str(row) for row in actions), (
        "no key in the trail"
    )


def test_by_api(client, user):
    client.force_login(user)
    answer = client.post(reverse("api-token"))
    assert answer.status_code == 201
    assert answer.json()["key"] == Token.objects.get(user=user).key
    assert client.delete(reverse("api-token")).status_code == 204
    assert client.delete(reverse("api-token")).status_code == 404


def test_nobody_gets_a_key_by_a_link_or_without_signing_in(client, user):
    assert client.post(reverse("token-issue")).status_code == 302
    assert client.post(reverse("api-token")).status_code in {401, 403}
    client.force_login(user)
    assert client.get(reverse("token-issue")).status_code == 405
    assert not Token.objects.exists()
