from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from core.errors import InputError
from core.money import Money
from planning.economics import site
from planning.economics.site import Plan
from planning.economics.types import ServerPlatform, Site


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


DGX = ServerPlatform("dgx-h100", "DGX H100", "h100", 8, usd("310000"), 10.2, 8, weight_kg=130)
ROOM = Site(
    "Hall 2",
    power_kw=400,
    cooling_kw=300,
    racks=20,
    kw_per_rack=22,
    used_power_kw=100,
    used_racks=4,
)
TODAY = date(2026, 12, 1)


def plan(**changes) -> Plan:
    values = {
        "server": DGX,
        "cards": 128,
        "need_by": date(2027, 6, 1),
        "lead_weeks": 12,
        "unit_cost": usd("385000"),
        "acceptance_days": 10,
    }
    return Plan(**{**values, **changes})


def test_servers_that_fit_by_each_resource_tightest_first():
    room = site.envelope(ROOM, DGX)
    assert {limit.name: limit.servers for limit in room.limits} == {
        "power": 29,  # 300 kW free
        "cooling": 29,
        "rack_power": 32,  # two of 10.2 kW in 22 kW, 16 free racks
    }
    assert room.servers == 29


def test_a_server_that_one_rack_cannot_feed_fits_nowhere():
    old = replace(ROOM, kw_per_rack=6)
    room = site.envelope(old, DGX)
    assert room.servers == 0
    assert room.binds.name == "rack_power"
    assert str(room.binds.message) == "A rack is fed 6 kW and one server takes 10.2 kW"


def test_height_floor_and_liquid_bind_too():
    tall = replace(ROOM, kw_per_rack=200, units_per_rack=42)
    assert site.servers_per_rack(tall, DGX) == (5, "rack_units")
    weak = replace(tall, floor_kg_per_rack=300)
    assert site.servers_per_rack(weak, DGX) == (2, "floor")
    with pytest.raises(InputError) as error:
        site.envelope(weak, replace(DGX, weight_kg=None))
    assert error.value.field == "server.weight_kg"
    assert site.envelope(ROOM, replace(DGX, liquid_cooled=True)).binds.name == "liquid_cooling"


def test_last_order_date_is_need_by_less_lead_less_acceptance():
    assert site.last_order_date(date(2027, 6, 1), lead_weeks=12, acceptance_days=10) == date(
        2027, 2, 27
    )
    # B200 class: 26 weeks usual, so the same need was due half a year before
    assert site.last_order_date(date(2027, 6, 1), lead_weeks=26, acceptance_days=10) == date(
        2026, 11, 21
    )


def test_three_numbers_agree():
    found = site.agree(plan(budget=usd("7000000")), ROOM, today=TODAY)
    assert found.feasible
    assert found.messages == ()
    assert found.servers_needed == 16
    assert found.cards_that_fit == 232
    assert found.binds == "budget"  # 18 servers; the room would carry 29


def test_a_plan_within_budget_but_not_within_the_room_says_so():
    found = site.agree(plan(cards=320, budget=usd("99000000")), ROOM, today=TODAY)
    assert not found.feasible
    assert found.binds == "power"
    text = [str(message) for message in found.messages]
    assert text[0] == "The site carries 29 of 40 servers"
    assert text[1] == "Free power is 300 kW, each server takes 10.2 kW"
    assert text[2] == "The plan fits the budget, but money does not make it fit"


def test_a_plan_within_room_and_budget_but_too_late_says_so():
    found = site.agree(plan(lead_weeks=26, budget=usd("99000000")), ROOM, today=TODAY)
    assert found.fits_site
    assert found.fits_budget
    assert not found.fits_date
    assert found.binds == "date"
    assert str(found.messages[0]).startswith("The last day to order was 2026-11-21, 10 days ago")
    assert "2027-06-11" in str(found.messages[0])


def test_too_little_money():
    found = site.agree(plan(budget=usd("1000000")), ROOM, today=TODAY)
    assert not found.fits_budget
    assert str(found.messages[-1]) == "The budget pays for 2 of 16 servers"


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: replace(ROOM, used_power_kw=500), "site.used_power_kw"),
        (lambda: replace(ROOM, racks=-1), "site.racks"),
        (lambda: plan(cards=0), "cards"),
        (lambda: plan(budget=Money(Decimal(1), "CNY")), "budget"),
        (lambda: site.last_order_date(TODAY, lead_weeks=-1), "lead_weeks"),
        (lambda: replace(DGX, idle_power_kw=11), "server.idle_power_kw"),
    ],
)
def test_bad_input_names_the_field(call, field):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field
