"""A person's key to the API: one at a time, shown once, revoked at will."""

from __future__ import annotations

from django.db import transaction
from rest_framework.authtoken.models import Token

from core.audit import record
from core.models import User


@transaction.atomic
def issue_token(user: User) -> str:
    """A fresh key for `user`; the one before stops working. Returns it in clear, for the only time."""
    Token.objects.filter(user=user).delete()
    token = Token.objects.create(user=user)
    record("api_token.issued", on=user, by=user)
    return str(token.key)


@transaction.atomic
def revoke_token(user: User) -> bool:
    """Take the key away. False when there was none."""
    gone, _rows = Token.objects.filter(user=user).delete()
    if gone:
        record("api_token.revoked", on=user, by=user)
    return bool(gone)
