"""The purchasing policy: within limits, loosened by two, by page and by API."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import AuditEntry
from core.roles import Role
from planning.services.policy_presets import load_policy
from procurement.models import PurchasingPolicy
from procurement.purchasing_limits import BOUNDS, loosened
from procurement.services.policy import (
    confirm_purchasing_policy,
    decline_purchasing_policy,
    set_purchasing_policy,
)
from tests.factories import MembershipFactory, OrganisationFactory, UserFactory


def administrator():
    user = UserFactory()
    MembershipFactory(user=user, team=None, role=Role.ADMINISTRATOR)
    return user


@pytest.fixture
def admin(db):
    OrganisationFactory()
    return administrator()


def signed_in(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("end", [0, 1])
def test_each_value_has_a_lower_and_an_upper_limit(admin, name, end):
    limit = BOUNDS[name][end]
    step = (
        Decimal("0.0001") if limit != int(limit) or name.endswith(("delivery", "tolerance")) else 1
    )
    set_purchasing_policy(by=None, **{name: limit})
    beyond = limit - step if end == 0 else limit + step
    with pytest.raises(InputError) as refused:
        set_purchasing_policy(by=None, **{name: beyond})
    error = refused.value
    assert (error.field, error.value) == (name, str(beyond))
    assert str(limit) in str(error.limit)
    assert name in str(error)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "many", "1e99", "2.5", ""])
def test_what_is_no_number_for_it_is_refused_by_name(admin, value):
    with pytest.raises(InputError) as refused:
        set_purchasing_policy(by=None, openers=value)
    assert refused.value.field == "openers"


def test_which_way_is_looser():
    before = {"sealing": "choice", "openers": 2, "price_tolerance": Decimal("0.01")}
    assert loosened(before, {"sealing": "always", "openers": 3}) == []
    assert loosened(before, {"sealing": "never", "openers": 1}) == ["sealing", "openers"]
    assert loosened(before, {"price_tolerance": Decimal("0.02")}) == ["price_tolerance"]
    assert loosened(before, {"price_tolerance": Decimal(0)}) == []
    asked = {"conflict_statements": True}
    assert loosened(asked, {"conflict_statements": False}) == ["conflict_statements"]
    assert loosened({"conflict_statements": False}, asked) == []


@pytest.mark.parametrize("preset", ["company", "regulated"])
def test_loosening_takes_a_second_administrator(admin, preset):
    load_policy(preset=preset, by=None)
    waiting = set_purchasing_policy(by=admin, price_tolerance=Decimal("0.05"), openers=3)
    assert (waiting.price_tolerance, waiting.openers) == (0, 2)
    assert waiting.proposed_by == admin
    with pytest.raises(NotPermitted):
        confirm_purchasing_policy(by=admin)
    second = administrator()
    done = confirm_purchasing_policy(by=second)
    assert (done.price_tolerance, done.openers) == (Decimal("0.05"), 3)
    assert (done.proposed, done.proposed_by, done.proposed_at) == ({}, None, None)
    entry = AuditEntry.objects.filter(action="purchasing_policy.set").latest("pk")
    assert entry.actor == second
    assert entry.data["proposed_by"] == admin.pk
    with pytest.raises(InvalidTransition):
        confirm_purchasing_policy(by=administrator())


def test_what_only_tightens_is_in_force_at_once(admin):
    load_policy(preset="regulated", by=None)
    done = set_purchasing_policy(by=admin, sealing="always", openers=3, burn_in_hours=96)
    assert (done.sealing, done.openers, done.burn_in_hours, done.proposed) == ("always", 3, 96, {})


def test_a_change_in_force_meanwhile_is_its_own_and_leaves_the_proposal_waiting(admin):
    load_policy(preset="company", by=None)
    set_purchasing_policy(by=admin, openers=1)
    second = administrator()
    done = set_purchasing_policy(by=second, burn_in_hours=96)
    assert (done.burn_in_hours, done.openers, done.waits) == (96, 2, False)
    entry = AuditEntry.objects.filter(action="purchasing_policy.set").latest("pk")
    assert (entry.actor, "proposed_by" in entry.data) == (second, False)
    assert (done.proposed, done.proposed_by) == ({"openers": "1"}, admin)
    done = confirm_purchasing_policy(by=second)
    assert (done.openers, done.burn_in_hours) == (1, 96)
    entry = AuditEntry.objects.filter(action="purchasing_policy.set").latest("pk")
    assert (entry.actor, entry.data["proposed_by"]) == (second, admin.pk)


def test_a_proposal_holds_only_what_it_changes(admin):
    load_policy(preset="company", by=None)
    waiting = set_purchasing_policy(by=admin, openers=1, burn_in_hours=72, sealing="choice")
    assert waiting.waits
    assert waiting.proposed == {"openers": "1"}
    set_purchasing_policy(by=administrator(), burn_in_hours=96)
    assert confirm_purchasing_policy(by=administrator()).burn_in_hours == 96


def test_a_proposal_whose_ground_changed_is_refused_and_says_so(admin):
    load_policy(preset="company", by=None)
    set_purchasing_policy(by=admin, openers=1)
    second = administrator()
    set_purchasing_policy(by=second, openers=3)
    client = signed_in(second)
    page = client.get(reverse("purchasing-policy")).text
    assert reverse("purchasing-policy-step", args=["confirm"]) not in page
    assert "Changed since it was proposed" in page
    with pytest.raises(StaleData, match="openers") as refused:
        confirm_purchasing_policy(by=second)
    assert refused.value.changes == {"openers": ("2", "3")}
    assert PurchasingPolicy.current().proposed == {"openers": "1"}
    assert decline_purchasing_policy(by=second).openers == 3


def test_somebody_elses_proposal_is_not_replaced_in_silence(admin):
    load_policy(preset="company", by=None)
    set_purchasing_policy(by=admin, openers=1)
    with pytest.raises(InvalidTransition, match=str(admin)):
        set_purchasing_policy(by=administrator(), reason_length=1)
    waiting = set_purchasing_policy(by=admin, reason_length=1)
    assert waiting.proposed == {"reason_length": "1"}
    entry = AuditEntry.objects.filter(action="purchasing_policy.proposed").latest("pk")
    assert entry.data["replaces"] == {"openers": ["2", "1"]}


def test_one_is_enough_in_a_small_team(admin):
    load_policy(preset="small_team", by=None)
    assert set_purchasing_policy(by=admin, openers=1).openers == 1


def test_a_change_is_declined_and_leaves_a_trail(admin):
    load_policy(preset="company", by=None)
    waiting = set_purchasing_policy(by=admin, openers=1)
    with pytest.raises(StaleData):
        decline_purchasing_policy(by=administrator(), version=waiting.version - 1)
    done = decline_purchasing_policy(by=administrator(), version=waiting.version)
    assert (done.openers, done.proposed) == (2, {})
    assert AuditEntry.objects.filter(action="purchasing_policy.declined").exists()


def test_by_api(admin):
    load_policy(preset="company", by=None)
    path = reverse("api-purchasing-policy")
    client = signed_in(admin)

    def patch(**values):
        return client.patch(path, values, content_type="application/json")

    refused = patch(price_tolerance="5")
    assert refused.status_code == 422
    assert refused.json()["field"] == "price_tolerance"
    assert refused.json()["value"] == "5.0000"
    assert "0.1" in refused.json()["limit"]
    endless = patch(price_tolerance="1" + "0" * 40)  # beyond what decimals can be rounded to
    assert endless.status_code == 400
    assert list(endless.json()) == ["price_tolerance"]
    assert patch(openers=3).status_code == 200
    waiting = patch(openers=2)
    assert waiting.status_code == 202
    assert waiting.json()["proposed"] == {"openers": "2"}
    confirm = reverse("api-purchasing-policy-step", args=["confirm"])
    assert client.post(confirm).status_code == 403
    assert signed_in(administrator()).post(confirm).json()["openers"] == 2
    assert (
        signed_in(UserFactory()).patch(path, {}, content_type="application/json").status_code == 403
    )
    assert client.post(reverse("api-purchasing-policy-step", args=["burn"])).status_code == 404


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_by_page(admin, language):
    load_policy(preset="company", by=None)
    admin.language = language
    admin.save()
    client = signed_in(admin)
    page = reverse("purchasing-policy")
    assert signed_in(UserFactory()).get(page).status_code == 404
    assert client.get(page).status_code == 200
    values = {
        "sealing": "choice", "openers": "2", "minimum_vendors": "1", "reason_length": "20",
        "over_delivery": "0", "price_tolerance": "0", "burn_in_hours": "72",
    }  # fmt: skip
    refused = client.post(page, values | {"burn_in_hours": "9999"})
    assert refused.status_code == 422
    assert "9999" in str(refused.context["form"].errors["burn_in_hours"])
    assert "720" in str(refused.context["form"].errors["burn_in_hours"])
    version = PurchasingPolicy.current().version
    assert (
        client.post(page, values | {"burn_in_hours": "24", "version": version}).status_code == 302
    )
    assert PurchasingPolicy.current().burn_in_hours == 72
    text = client.get(page).content.decode()
    confirm = reverse("purchasing-policy-step", args=["confirm"])
    assert confirm not in text
    second = administrator()
    assert confirm in signed_in(second).get(page).content.decode()
    assert signed_in(second).post(confirm).status_code == 302
    assert PurchasingPolicy.current().burn_in_hours == 24
