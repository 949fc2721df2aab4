"""Accounts are made by an administrator: nobody signs up by themselves."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Closed to sign-up."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False
