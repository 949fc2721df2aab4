"""Machine rooms: who describes them, what is refused, by page and by API; the stage of the organisation."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse

from core.errors import InputError, NotPermitted, StaleData
from core.models import AuditEntry, Organisation
from planning import stock
from planning.models import Site
from planning.models.telemetry import SUMS, Ownership, PoolDay
from planning.services.sites import save_site
from planning.services.snapshots import snapshot
from planning.services.stage import set_stage
from planning.services.studies import setting_for
from planning.study.search.snapshot import IdleStock
from tests.planning import builders

FIGURES = {"power_kw": 120.0, "cooling_kw": 120.0, "racks": 10, "kw_per_rack": 20.0}
FORM = {
    "name": "Hall 1", "power_kw": "120", "used_power_kw": "0", "cooling_kw": "120", "used_cooling_kw": "0",
    "racks": "10", "used_racks": "0", "kw_per_rack": "20", "units_per_rack": "42", "active": "on",
}  # fmt: skip


@pytest.fixture
def w(db):
    return builders.world()


def test_operations_and_administrators_describe_sites_and_nobody_else(w):
    for person in (
        w.requester,
        w.lead,
        w.cto,
        w.finance,
        w.procurement,
        w.auditor,
        w.superuser,
        w.outsider,
    ):
        with pytest.raises(NotPermitted):
            save_site(by=person, name="Hall 1", **FIGURES)
    site = save_site(by=w.operations, name="Hall 1", **FIGURES)
    save_site(by=w.admin, site_id=site.pk, version=1, name="Hall 1", used_power_kw=20.0)

    site.refresh_from_db()
    assert (site.used_power_kw, site.power_kw, site.version) == (20.0, 120.0, 2)
    entry = AuditEntry.objects.get(action="site.changed")
    assert entry.data["changes"] == {"used_power_kw": [0.0, 20.0]}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"used_power_kw": 121.0}, "used_power_kw"),
        ({"used_racks": 11}, "used_racks"),
        ({"country": "C1"}, "country"),
        ({"country": "中国"}, "country"),
        ({"used_cooling_kw": -1.0}, "used_cooling_kw"),
        ({"kw_per_rack": -1.0}, "kw_per_rack"),
        ({"pue": 0.9}, "pue"),
        ({"floor_kg_per_rack": -5.0}, "floor_kg_per_rack"),
        ({"charge_per_kw_month": Decimal(900)}, "currency"),
        ({"charge_per_kw_month": Decimal(-1), "currency": "CNY"}, "charge_per_kw_month"),
        ({"power_kw": None}, "power_kw"),
    ],
)
def test_figures_that_cannot_be_are_refused_at_their_field(w, changes, field):
    with pytest.raises(InputError) as caught:
        save_site(by=w.operations, name="Hall 1", **{**FIGURES, **changes})
    assert caught.value.field == field
    assert not Site.objects.exists()


def test_a_name_is_taken_once_and_an_old_version_is_refused(w):
    site = save_site(by=w.operations, name="Hall 1", **FIGURES)

    with pytest.raises(InputError) as caught:
        save_site(by=w.operations, name="Hall 1", **FIGURES)
    assert caught.value.field == "name"
    with pytest.raises(StaleData):
        save_site(by=w.operations, site_id=site.pk, version=7, name="Hall 1")


def test_the_database_holds_what_is_used_within_what_is_there(w):
    site = save_site(by=w.operations, name="Hall 1", **FIGURES)
    with pytest.raises(IntegrityError), transaction.atomic():
        Site.objects.filter(pk=site.pk).update(used_power_kw=500)


def test_sites_in_use_come_into_studies(w):
    save_site(
        by=w.operations, name="Hall 1", currency="CNY", charge_per_kw_month=Decimal(800), **FIGURES
    )
    save_site(by=w.operations, name="Full hall", active=False, **FIGURES)

    rooms = snapshot(builders.today()).rooms

    assert [room.site.name for room in rooms] == ["Hall 1"]
    assert rooms[0].charge.amount == 800
    assert rooms[0].country == ""


def test_rooms_and_free_cards_bear_the_country_of_their_site(w, monkeypatch):
    save_site(by=w.operations, name="Hall SG", country="sg ", **FIGURES)
    cards = [IdleStock("nvidia-h100-sxm5-80gb", 8, 8, name) for name in ("Hall SG", "Attic")]
    monkeypatch.setattr(stock, "_sources", [lambda day: cards])

    found = snapshot(builders.today())

    assert [room.country for room in found.rooms] == ["SG"]
    assert {one.name: one.country for one in found.stock} == {"Hall SG": "SG", "Attic": ""}


def test_the_pages_describe_change_and_keep_what_was_typed(w, client):
    client.force_login(w.operations)
    assert client.get(reverse("site-list")).status_code == 200
    wrong = client.post(reverse("site-create"), {**FORM, "used_power_kw": "130"})
    assert wrong.status_code == 422
    assert 'value="130"' in wrong.content.decode()
    client.post(reverse("site-create"), FORM)
    site = Site.objects.get()
    page = client.post(
        site.get_absolute_url(), {**FORM, "used_racks": "3", "version": "1"}, follow=True
    )
    assert page.status_code == 200
    site.refresh_from_db()
    assert site.used_racks == 3
    assert "Hall 1" in client.get(reverse("site-list")).content.decode()

    client.force_login(w.requester)
    assert client.get(site.get_absolute_url()).status_code == 200
    assert client.get(reverse("site-create")).status_code == 403
    assert client.post(site.get_absolute_url(), FORM).status_code == 403


def test_the_api_describes_and_changes(w, client):
    client.force_login(w.operations)
    made = client.post(reverse("api-sites"), {"name": "Hall 1", **FIGURES}, "application/json")
    assert made.status_code == 201, made.content
    address = reverse("api-site", args=[made.json()["id"]])
    changed = client.patch(address, {"used_racks": 2}, "application/json")
    assert (changed.json()["used_racks"], changed.json()["version"]) == (2, 2)
    refused = client.patch(address, {"used_racks": 99}, "application/json")
    assert refused.status_code == 422
    assert "used_racks" in refused.content.decode()

    client.force_login(w.requester)
    assert client.get(reverse("api-sites")).status_code == 200
    assert client.patch(address, {"used_racks": 1}, "application/json").status_code == 403


def test_the_stage_is_set_by_those_who_may_and_comes_into_studies(w, client):
    with pytest.raises(NotPermitted):
        set_stage(stage="large", by=w.requester)
    with pytest.raises(InputError) as caught:
        set_stage(stage="huge", by=w.admin)
    assert caught.value.field == "stage"
    client.force_login(w.admin)
    assert client.post(reverse("organisation-stage"), {"stage": "midsize"}).status_code == 302
    assert Organisation.objects.get().stage == "midsize"
    answer = client.put(reverse("api-organisation-stage"), {"stage": "large"}, "application/json")
    assert answer.json() == {"stage": "large"}
    assert setting_for(builders.draft(w).current).stage == "large"


def test_what_the_team_has_left_comes_into_studies(w):
    builders.fund(w, "5000", "cloud")
    builders.fund(w, "80000", "purchase")

    setting = setting_for(builders.draft(w).current)

    assert setting.budgets == {"cloud": 5000, "purchase": 80000}


def test_measured_use_of_owned_cards_comes_into_studies(w):
    draft = builders.draft(w)
    assert setting_for(draft.current).owned_utilisation is None
    yesterday = builders.today() - timedelta(days=1)
    for ownership, busy in ((Ownership.OWNED, 4.8), (Ownership.CLOUD, 24.0)):
        sums = dict.fromkeys(SUMS, 0.0) | {
            "hours": 24.0, "utilization_sum": busy, "utilization_hours": 24.0
        }  # fmt: skip
        PoolDay.objects.create(
            day=yesterday, team=w.team, accelerator_slug="nvidia-h100-sxm5-80gb", ownership=ownership, cards=1, **sums
        )  # fmt: skip

    assert setting_for(draft.current).owned_utilisation == 0.2
