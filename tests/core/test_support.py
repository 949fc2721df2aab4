"""The support pages change nothing and hold no keys."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.urls import NoReverseMatch, reverse

from core.admin import ReadOnlyAdmin


def test_every_support_page_is_read_only():
    assert admin.site._registry, "something is shown"
    loose = [m for m, page in admin.site._registry.items() if not isinstance(page, ReadOnlyAdmin)]
    assert loose == []


@pytest.mark.parametrize(
    "name", ["authtoken_tokenproxy", "account_emailaddress", "mfa_authenticator"]
)
def test_keys_and_second_factors_have_no_page(name):
    with pytest.raises(NoReverseMatch):
        reverse(f"admin:{name}_changelist")
    assert not admin.site.is_registered(Group)
