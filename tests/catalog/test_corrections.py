"""An organisation states other figures: dated, with reason, and the shipped ones stay in view."""

from datetime import date

import pytest

from catalog import selectors
from catalog.models import Accelerator, ModelArchitecture, TcoDefault
from catalog.services.revisions import ACCELERATOR, ARCHITECTURE, TCO, correct
from core.errors import InputError, NotPermitted, StaleData
from core.models import AuditEntry
from core.roles import Role

TOLD = {"source": "Vendor letter 2026-114", "as_of": date(2026, 12, 1), "confidence": "read"}


@pytest.fixture
def card(loaded):
    return Accelerator.objects.get(slug="huawei-ascend-910b-910b3-atlas-800t-a2")


def test_a_correction_is_a_new_revision_and_the_shipped_one_stays(card, buyer):
    row = correct(
        ACCELERATOR, pk=card.pk, changes={"hbm_bandwidth": 1.6e12}, reason="Vendor statement for 910B3",
        by=buyer, seen=1, **TOLD,
    )  # fmt: skip

    card.refresh_from_db()
    assert (row.number, row.origin) == (2, "correction")
    assert card.current.hbm_bandwidth == 1.6e12
    assert card.reference.hbm_bandwidth == 1.2e12
    assert card.current.hbm_bytes == card.reference.hbm_bytes
    entry = AuditEntry.objects.get(action="accelerator.corrected")
    assert entry.actor == buyer
    assert entry.reason == "Vendor statement for 910B3"
    assert entry.data["changes"] == {"hbm_bandwidth": [1.2e12, 1.6e12]}


def test_estimators_take_the_corrected_figure(card, buyer):
    from planning import reference

    correct(ACCELERATOR, pk=card.pk, changes={"tdp": 410.0}, reason="Measured", by=buyer, **TOLD)

    assert reference.accelerators_from_database()[card.slug].tdp == 410.0
    assert reference.accelerators()[card.slug].tdp == 400


def test_a_corrected_dense_rate_drops_a_marketing_figure_below_it(loaded, buyer):
    card = selectors.accelerators_by_slug(["nvidia-l4"])["nvidia-l4"]
    rates = card.current.peak_flops | {"bf16": 300e12}
    row = correct(
        ACCELERATOR, pk=card.pk, changes={"peak_flops": rates}, reason="Test", by=buyer, **TOLD
    )
    assert "bf16" not in row.marketing_flops
    assert row.marketing_flops["fp8"] == card.current.marketing_flops["fp8"]


def test_a_corrected_shape_forgets_counts_of_the_old_one(loaded, buyer):
    model = ModelArchitecture.objects.get(slug="llama-3-1-8b")
    row = correct(
        ARCHITECTURE, pk=model.pk, changes={"kv_heads": 4}, reason="Pruned", by=buyer, **TOLD
    )
    assert row.params_computed_total is None
    assert row.kv_elements_per_token == 2 * 32 * 4 * 128


def test_cost_defaults_keep_their_order(loaded, buyer):
    default = TcoDefault.objects.get(key="pue.colocation")
    correct(TCO, pk=default.pk, changes={"value": 1.3}, reason="Our site", by=buyer, **TOLD)
    assert selectors.tco_values()["pue.colocation"][1] == 1.3
    with pytest.raises(InputError, match="between low and high"):
        correct(TCO, pk=default.pk, changes={"value": 1.9}, reason="Our site", by=buyer, **TOLD)


@pytest.mark.parametrize("role", [Role.PROCUREMENT, Role.OPERATIONS, Role.ADMINISTRATOR])
def test_these_roles_may_correct(card, make_user, role):
    user = make_user(role)
    correct(ACCELERATOR, pk=card.pk, changes={"tdp": 401.0}, reason="Measured", by=user, **TOLD)
    card.refresh_from_db()
    assert card.current.author == user


@pytest.mark.parametrize("role", [Role.REQUESTER, Role.APPROVER, Role.FINANCE, Role.AUDITOR])
def test_others_may_not(card, make_user, role):
    with pytest.raises(NotPermitted):
        correct(
            ACCELERATOR, pk=card.pk, changes={"tdp": 1.0}, reason="x", by=make_user(role), **TOLD
        )


def test_a_role_in_one_team_or_support_access_is_not_enough(card, make_user, team):
    for user in (make_user(Role.PROCUREMENT, team=team), make_user(is_superuser=True)):
        with pytest.raises(NotPermitted):
            correct(ACCELERATOR, pk=card.pk, changes={"tdp": 1.0}, reason="x", by=user, **TOLD)


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"tdp": 400.0}, "same", "changes"),
        ({"tdp": 410.0}, "  ", "reason"),
        ({"tdp": 0.0}, "zero", "tdp"),
        ({"tdp": float("nan")}, "nan", "tdp"),
        ({"hbm_bytes": None}, "gone", "hbm_bytes"),
        ({"peak_flops": {"bf16": -1.0}}, "negative", "peak_flops"),
        ({"form_factor": "SXM"}, "not a figure", "form_factor"),
    ],
)
def test_what_cannot_be_is_refused_by_name(card, buyer, changes, reason, field):
    with pytest.raises(InputError) as error:
        correct(ACCELERATOR, pk=card.pk, changes=changes, reason=reason, by=buyer, **TOLD)
    assert error.value.field == field
    assert card.specs.count() == 1


def test_who_read_an_older_revision_is_told(card, buyer):
    correct(
        ACCELERATOR, pk=card.pk, changes={"tdp": 410.0}, reason="First", by=buyer, seen=1, **TOLD
    )
    with pytest.raises(StaleData):
        correct(
            ACCELERATOR,
            pk=card.pk,
            changes={"tdp": 420.0},
            reason="Second",
            by=buyer,
            seen=1,
            **TOLD,
        )
