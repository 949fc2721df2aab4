"""The calendar by place: what nobody told a place of counts at no place."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from core.models import User
from core.organisation import today
from planning import supply as supplies
from planning.capacity import OWNED, Supply
from planning.models import PlanChoice
from planning.selectors.capacity import calendar
from planning.services import allocations
from procurement.models import Asset
from procurement.selectors.supply import card_supply
from tests.planning import builders

pytestmark = pytest.mark.django_db
H100 = "h100-sxm-80gb"


@pytest.fixture
def w(monkeypatch):
    monkeypatch.setattr(supplies, "_sources", [
        lambda on: [Supply(H100, 10, OWNED, on, place="Shanghai"), Supply(H100, 40, OWNED, on)]
    ])  # fmt: skip
    return builders.world()


def asked(w, region: str, **fields):
    return builders.in_review(w, region=region, need_by=today() + timedelta(days=5),
                              duration_days=40, **fields)  # fmt: skip


def test_a_place_has_its_own_supply_and_demand(w):
    for _ in range(3):
        asked(w, "Shanghai")
    asked(w, "Beijing")
    asked(w, "")
    found = calendar(w.cto)
    assert [(place.name, place.short) for place in found.places] == [
        ("", ((H100, 0),)), ("Beijing", ((H100, 6),)), ("Shanghai", ((H100, 8),)),
    ]  # fmt: skip
    (everywhere,) = found.pools
    assert everywhere.months[0].owned == 50
    assert not any(month.short for month in everywhere.months)  # 50 cards hide what a place lacks
    (there,) = calendar(w.cto, place="Shanghai").pools
    assert (there.months[0].owned, len(there.demand), len(there.windows)) == (10, 3, 1)
    (nowhere,) = calendar(w.cto, place="").pools
    assert (nowhere.months[0].owned, len(nowhere.demand)) == (40, 1)
    assert calendar(w.cto, place="Mars").pools == ()


def test_the_plans_place_comes_before_the_text_and_bookings_stand_where_the_plan_is(w):
    builders.fund(w, "1000")
    request = asked(w, "Shanghai")
    PlanChoice.objects.update(summary={"place": "Beijing"})
    request.current.steps.update(content_hash=request.current.bound_hash())
    builders.vote(request, w.lead)
    allocations.book(request_id=request.pk, cards=8, first_day=today(),
                     last_day=today() + timedelta(days=9), by=w.procurement)  # fmt: skip
    (pool,) = calendar(w.cto, place="Beijing").pools
    (demand,) = pool.demand
    assert (demand.kind, demand.place) == ("running", "Beijing")


def test_who_sees_some_teams_sees_places_of_their_demand_alone(w):
    asked(w, "Beijing")
    found = calendar(w.requester)
    assert [place.name for place in found.places] == ["Beijing"]
    assert calendar(w.outsider).places == ()


def test_as_many_queries_for_many_places(w):
    counts = []
    for number in range(2):
        for region in ("Shanghai", f"Region {number}", f"Zone {number}"):
            asked(w, region)
        cto = User.objects.get(pk=w.cto.pk)
        with CaptureQueriesContext(connection) as seen:
            calendar(cto)
        counts.append(len(seen))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_page_and_api_choose_a_place(w, client, language):
    asked(w, "Beijing & more")
    w.cto.language = language
    w.cto.save()
    client.force_login(w.cto)
    page = client.get(reverse("capacity")).content.decode()
    assert "Beijing &amp; more" in page
    assert "?place=Beijing%20%26%20more" in page
    one = client.get(reverse("capacity"), {"place": "Beijing & more"}).content.decode()
    assert ("All places" if language == "en" else "所有地点") in one
    api = APIClient()
    api.force_authenticate(w.cto)
    told = api.get("/api/v1/capacity/", {"place": "Beijing & more"}).json()
    assert told["place"] == "Beijing & more"
    assert [len(row["months"]) for row in told["pools"]] == [12]
    assert told["places"][0] == {"name": "", "short": {H100: 0}}


def test_cards_stand_where_they_or_their_server_stand(organisation):
    server = Asset.objects.create(
        kind="server",
        serial="S1",
        folded_serial="S1",
        status="in_service",
        site="Hall A",
        received_on=today(),
        in_service_at=timezone.now(),
    )
    for number, (site, parent) in enumerate(
        (("", server), ("Hall B", server), ("", None)), start=2
    ):
        Asset.objects.create(
            kind="accelerator", serial=f"C{number}", folded_serial=f"C{number}", status="in_service", site=site,
            parent=parent, accelerator_slug=H100, received_on=today(), in_service_at=timezone.now(),
        )  # fmt: skip
    assert {(row.place, row.cards) for row in card_supply(today())} == {
        ("Hall A", 1), ("Hall B", 1), ("", 1),
    }  # fmt: skip
