"""Teams' requests pooled, by page and API, and only those that the reader may see."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse

from core.organisation import today
from core.roles import Role
from planning import stock, supply
from planning.models import Study
from planning.portfolio_tables import context
from planning.selectors.placement import placed
from planning.selectors.portfolio import demand_of_others, portfolio
from planning.services import requests
from planning.services.snapshots import snapshot
from planning.services.studies import setting_for
from planning.states import StudyStatus
from planning.study.request import parse_request
from planning.study.search.purchase_tax import PurchaseTax
from planning.study.search.run import run_study
from planning.study.search.snapshot import IdleStock
from tests.factories import TeamFactory
from tests.planning import builders
from tests.planning.study.search.markets import HOURS, market, offer, platform

H100 = "nvidia-h100-sxm5-80gb"


@pytest.fixture
def w(db, monkeypatch):
    monkeypatch.setattr(stock, "_sources", [])
    return builders.world()


def asked(w, cards, begins, days, team=None, by=None, **plan):
    request = builders.planned(
        w, need_by=today() + timedelta(days=begins), duration_days=days, plan_cards=cards,
        plan_accelerator_slug=H100, plan_servers=cards // 8, team_id=(team or w.team).pk, by=by or w.requester, **plan,
    )  # fmt: skip
    return requests.submit_request(request_id=request.pk, by=request.requester)


@pytest.fixture
def two_teams(w):
    """One team in spring, the other after it: together they need the cards once."""
    other = w.outsider.teams.get()
    first = asked(w, 16, 30, 60)
    second = asked(w, 16, 120, 60, team=other, by=w.outsider)
    return first, second, other


def test_peaks_that_do_not_coincide_share_cards(w, two_teams):
    found = portfolio(w.procurement)

    (pool,) = found.pools
    assert (pool.pooled.sum_of_peaks, pool.pooled.peak_of_sums) == (40, 20)
    assert pool.pooled.to_buy == 20
    assert pool.pooled.saved.currency == w.organisation.currency
    assert {len(series) for series in pool.by_team.values()} == {364}


def test_what_is_on_order_or_accepted_is_not_bought_a_second_time(w, monkeypatch, client):
    monkeypatch.setattr(supply, "_bound", [])
    request = asked(w, 24, 30, 60)
    supply.register_bound(
        lambda ids: {(pk, slug): 16 for pk in ids for slug in (H100, "another-card")}
    )

    (pool,) = portfolio(w.procurement).pools

    assert (pool.bound, pool.wanted[0].open) == (16, 8)
    assert pool.pooled.to_buy == 10  # 8 and a fifth
    assert max(pool.by_team[str(request.team)]) == 24  # wanted all the same

    supply.register_bound(lambda ids: {(pk, H100): 8 for pk in ids})
    (pool,) = portfolio(w.procurement).pools
    assert (pool.bound, pool.pooled.to_buy) == (24, 0)
    client.force_login(w.procurement)
    told = client.get(reverse("api-portfolio")).json()["pools"][0]
    assert (told["on_order_or_accepted"], told["to_buy"]) == (24, 0)
    assert placed(w.procurement, snapshot(today()), None).placement is None


def test_a_need_of_two_days_is_drawn(w):
    asked(w, 8, 31, 2)
    found = portfolio(w.procurement)
    (chart,) = context(found)["charts"]
    assert max(row[2] for row in chart.rows) == 8


def test_idle_cards_come_before_buying(w, two_teams):
    stock.register(lambda day: [IdleStock(H100, 16, 12, "Room 1")])

    (pool,) = portfolio(w.procurement).pools

    assert (pool.owned, pool.idle, pool.pooled.met_by_idle, pool.pooled.to_buy) == (16, 12, 12, 8)


def test_a_team_sees_its_own_requests_only(w, two_teams, client):
    first, second, _other = two_teams
    seen = {want.request.pk for pool in portfolio(w.requester).pools for want in pool.wanted}
    assert seen == {first.pk}

    client.force_login(w.outsider)
    page = client.get(reverse("portfolio")).content.decode()
    assert second.reference in page
    assert first.reference not in page
    told = client.get(reverse("api-portfolio")).json()
    assert [row["request"] for row in told["pools"][0]["requests"]] == [second.pk]


def test_what_has_no_plan_is_named_and_drafts_are_left_out(w, client):
    bare = builders.draft(w)
    requests.submit_request(request_id=bare.pk, by=w.requester)
    builders.draft(w)

    found = portfolio(w.requester)

    assert found.pools == ()
    assert [request.pk for request in found.without_plan] == [bare.pk]
    client.force_login(w.requester)
    assert bare.reference in client.get(reverse("portfolio")).content.decode()


def test_the_page_asks_a_fixed_number_of_queries(w, client, django_assert_max_num_queries):
    for begins in (30, 60, 90, 120):
        asked(w, 8, begins, 30)
    client.force_login(w.procurement)
    with django_assert_max_num_queries(30):
        page = client.get(reverse("portfolio"))
    assert page.status_code == 200


def test_idle_cards_are_filled_first_and_what_binds_is_told(w, two_teams, client):
    stock.register(lambda day: [IdleStock(H100, 8, 8, "Room 1")])

    found = placed(w.procurement, snapshot(today()), None)

    pools = {one.pool for one in found.placement.assignments}
    assert any(pool.startswith("Room 1") for pool in pools)
    assert any(pool.endswith("On demand") for pool in pools)
    assert found.placement.complete
    assert "Room 1" in found.placement.binding[0].pool
    client.force_login(w.procurement)
    page = client.get(reverse("placement")).content.decode()
    assert two_teams[0].reference in page
    told = client.get(reverse("api-placement")).json()
    assert {row["request"] for row in told["assignments"]} == {one.pk for one in two_teams[:2]}


def test_rents_bear_the_tax_that_is_not_reclaimed(w, two_teams):
    taxes = (None, PurchaseTax(0.13, True, 0.06), PurchaseTax(0.13, False, 0.06))
    free, back, kept = (placed(w.procurement, snapshot(today()), tax).placement for tax in taxes)
    assert free.sheet.total == back.sheet.total
    assert kept.sheet.total.amount == pytest.approx(free.sheet.total.amount * Decimal("1.06"))


def test_data_that_may_not_leave_finds_no_place_in_a_cloud(w, client):
    kept = asked(w, 8, 30, 60, data_residence="organisation")
    country = asked(w, 8, 30, 60, data_residence="country")

    found = placed(w.requester, snapshot(today()), None)

    # The shipped catalogue rents the card out in no region of China.
    assert found.placement.assignments == ()
    assert [one.workload for one in found.placement.shortfalls] == [
        kept.reference,
        country.reference,
    ]
    client.force_login(w.requester)
    page = client.get(reverse("placement")).content.decode()
    assert kept.reference in page
    assert country.reference in page


def test_placing_shows_no_other_team(w, two_teams, client):
    client.force_login(w.outsider)
    assert two_teams[0].reference not in client.get(reverse("placement")).content.decode()
    assert (
        client.get(reverse("api-placement")).json()["assignments"][0]["request"] == two_teams[1].pk
    )


def test_what_others_ask_for_comes_into_a_study_after_idle_cards(w, two_teams):
    first, second, _other = two_teams
    others = demand_of_others(first)[H100]
    assert (others.requests, others.alone, others.together, others.idle) == (1, 16, 16, 0)
    assert others.card_hours == 16 * 60 * 24
    assert (others.teams, others.told) == (1, False)
    stock.register(lambda day: [IdleStock(H100, 8, 8, "Room 1")])
    assert demand_of_others(first)[H100].card_hours == 8 * 60 * 24
    third = builders.draft(w)
    both = demand_of_others(third)[H100]
    assert (both.requests, both.alone, both.together) == (2, 32, 16)

    setting = setting_for(third.current)
    assert setting.pooled == {H100: both}
    requests.cancel_request(request_id=second.pk, by=w.outsider, reason="no need")
    assert demand_of_others(first) == {}


ROLES = ("requester", "lead", "cto", "finance", "procurement", "auditor")


@pytest.mark.parametrize("teams", [2, 3])
@pytest.mark.parametrize("role", ROLES)
def test_no_reader_of_a_study_learns_what_few_other_teams_ask_for(w, client, role, teams):
    for number in range(teams):
        team = TeamFactory()
        by = builders.person(Role.REQUESTER, team)
        asked(w, 8 * (number + 2), 30, 90, team=team, by=by)
    asked(w, 8, 30, 90)  # of the same team: no other team
    own = builders.draft(w)
    setting = replace(setting_for(own.current), currency="USD", country="US")
    here = market(offer(price="60"), platforms=[platform()], slugs=(H100,))
    study = Study.objects.create(
        revision=own.current, status=StudyStatus.READY, inputs_hash="0" * 64,
        result=run_study(parse_request(HOURS), None, here, setting),
    )  # fmt: skip

    client.force_login(getattr(w, role))
    told = client.get(reverse("api-study", args=[study.pk])).content.decode()
    page = client.get(study.get_absolute_url()).content.decode()

    together = f"{8 + sum(8 * (n + 2) for n in range(teams))} cards together at the peak"
    assert setting.pooled[H100].teams == teams
    for seen in (told, page):
        assert (together in seen) == (teams >= 3)
        assert ("Open requests of others want" in seen) == (teams < 3)
