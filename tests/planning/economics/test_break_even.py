from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.money import Money
from planning.economics import break_even
from planning.economics.break_even import Rent
from planning.economics.ownership import evaluate
from planning.economics.ownership_case import default_case
from planning.economics.types import HOURS_PER_YEAR, ServerPlatform


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


DGX = ServerPlatform("dgx-h100", "DGX H100", "h100", 8, usd("310000"), 10.2, 8)
# p5.48xlarge at 6.88 a card-hour on demand; the one-year price at the default factor of 0.68
ON_DEMAND = Rent(usd("6.88"))
ONE_YEAR = Rent(usd("4.68"))
SPECIALIST = Rent(usd("3.60"))


def test_owning_pays_back_in_year_3_at_60_percent_and_not_at_30():
    case = default_case(DGX, 13)
    assert 25 <= break_even.break_even_month(case, ONE_YEAR, 0.60) <= 36
    assert break_even.break_even_month(case, ONE_YEAR, 0.30) is None


def test_against_on_demand_list_prices_it_pays_within_the_published_10_to_30_months():
    assert 10 <= break_even.break_even_month(default_case(DGX, 13), ON_DEMAND, 0.60) <= 30


def test_the_threshold_is_about_a_hundred_cards_at_70_percent_and_small_fleets_lose():
    sizes = dict(break_even.by_fleet_size(default_case(DGX, 1), SPECIALIST, [1, 2, 4, 13, 32]))
    assert sizes[8] is None
    assert sizes[104] == pytest.approx(0.70, abs=0.05)
    assert sizes[32] > sizes[104]


def test_month_and_utilisation_curves_are_each_others_inverse():
    case = default_case(DGX, 13)
    found = break_even.curves(case, ONE_YEAR)
    needed = dict(found.utilisation_by_month)
    for share, month in found.month_by_utilisation:
        if month is not None:
            assert needed[month] <= share
            assert needed[month - 1] is None or needed[month - 1] > share


def test_resale_brings_the_break_even_forward():
    case = default_case(DGX, 13)
    without = break_even.break_even_month(case, ONE_YEAR, 0.6)
    assert break_even.break_even_month(case, ONE_YEAR, 0.6, with_resale=True) < without


def test_falling_rents_put_it_off():
    case = default_case(DGX, 13)
    falling = Rent(usd("4.68"), decline_per_year=0.25)
    assert break_even.break_even_utilisation(case, falling, 36) > break_even.break_even_utilisation(
        case, ONE_YEAR, 36
    )


def test_the_curve_is_built_from_the_same_money_as_the_cash_flow():
    case = replace(default_case(DGX, 5), utilisation=0.45)
    costs = break_even.own_costs(case)
    running = costs.idle_by_year.sum() + costs.load_per_year * 0.45 * 3
    owned = evaluate(case)
    assert costs.capital == pytest.approx(float(owned.capital.amount))
    total = costs.capital + running - costs.residual_by_year[2]
    assert total == pytest.approx(float(owned.total.amount), abs=0.05)


def test_at_the_break_even_utilisation_an_owned_hour_costs_the_rent():
    case = default_case(DGX, 13)
    share = break_even.break_even_utilisation(case, ONE_YEAR, 36, with_resale=True)
    owned = evaluate(replace(case, utilisation=share))
    assert float(owned.per_accelerator_hour.amount) == pytest.approx(4.68, rel=1e-5)
    hours = case.accelerators * HOURS_PER_YEAR * 3 * share
    assert float(owned.total.amount) == pytest.approx(hours * 4.68, rel=1e-5)


@given(st.integers(200, 1500), st.integers(1, 300))
@settings(max_examples=30, deadline=None)
def test_a_dearer_rent_never_raises_the_break_even_utilisation(cents, more):
    case = default_case(DGX, 13)
    low = break_even.break_even_utilisation(case, Rent(usd(f"{cents / 100}")), 36)
    high = break_even.break_even_utilisation(case, Rent(usd(f"{(cents + more) / 100}")), 36)
    assert (high or 0) <= (low if low is not None else 1)
    assert low is None or high is not None


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: Rent(usd("-1")), "rent.per_card_hour"),
        (lambda: Rent(usd("1"), decline_per_year=1.0), "rent.decline_per_year"),
        (
            lambda: break_even.curves(default_case(DGX, 1), ONE_YEAR, utilisations=[1.2]),
            "utilisations",
        ),
        (lambda: break_even.curves(default_case(DGX, 1), Rent(Money(Decimal(1), "CNY"))), "rent"),
        (lambda: break_even.break_even_utilisation(default_case(DGX, 1), ONE_YEAR, 37), "months"),
    ],
)
def test_bad_input_names_the_field(call, field):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field
