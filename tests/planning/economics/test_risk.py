from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from core.errors import InputError
from core.money import Money
from planning.economics import risk
from planning.economics.break_even import Rent
from planning.economics.ownership import evaluate
from planning.economics.ownership_case import default_case
from planning.economics.risk import Range, Reservation, RiskInputs
from planning.economics.types import ServerPlatform


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


DGX = ServerPlatform("dgx-h100", "DGX H100", "h100", 8, usd("310000"), 10.2, 8)
CASE = default_case(DGX, 13)
RENT = Rent(usd("4.68"))
BASE = Reservation(usd("3.44"), 60)


def fixed(value: float) -> Range:
    return Range(value, value, value)


CERTAIN = RiskInputs(fixed(0.0), fixed(0.6), fixed(0.15), fixed(0.03), fixed(0.0), fixed(0.0))


def test_the_same_seed_gives_the_same_answer_and_another_seed_nearly():
    first = risk.simulate(CASE, RENT, seed=1, reservation=BASE)
    assert first == risk.simulate(CASE, RENT, seed=1, reservation=BASE)
    other = risk.simulate(CASE, RENT, seed=2, reservation=BASE)
    assert other != first
    assert other.own_cheaper == pytest.approx(first.own_cheaper, abs=0.02)
    for choice in first.choices:
        assert float(other.choice(choice.name).mean.amount) == pytest.approx(
            float(choice.mean.amount), rel=0.01
        )


def test_statistics_of_the_choices_are_in_order():
    result = risk.simulate(CASE, RENT, seed=7, reservation=BASE)
    assert {choice.name for choice in result.choices} == {"own", "rent", "reserve", "wait"}
    for choice in result.choices:
        assert choice.p10 < choice.p50 < choice.p90
        assert 0 <= choice.mean_regret.amount <= choice.p90_regret.amount or choice.best_share > 0.5
    assert sum(choice.best_share for choice in result.choices) == pytest.approx(1)
    means = [choice.mean.amount for choice in result.choices]
    assert means == sorted(means)
    # The least mean cost and the least mean regret are one: regret only subtracts the same best per path.
    assert result.least_regret.name == result.choices[0].name


def test_certain_inputs_give_the_discounted_sum_by_hand():
    case = replace(CASE, lead_weeks=0, acceptance_days=0, discount_rate=0.0)
    result = risk.simulate(case, RENT, seed=1, inputs=CERTAIN, paths=1000)
    quarter = 104 * 2190 * 0.6 * 4.68
    rented = sum(quarter * 0.85 ** ((2 * q + 1) / 8) for q in range(12))
    assert float(result.choice("rent").mean.amount) == pytest.approx(rented, rel=1e-9)
    owned = evaluate(replace(case, utilisation=0.6))
    assert float(result.choice("own").mean.amount) == pytest.approx(
        float(owned.total.amount), rel=1e-6
    )
    assert result.choice("own").p10 == result.choice("own").p90


def test_dear_rent_makes_owning_certain_and_cheap_rent_makes_it_absurd():
    assert risk.simulate(CASE, Rent(usd("20")), seed=3).own_cheaper > 0.99
    assert risk.simulate(CASE, Rent(usd("1.5")), seed=3).own_cheaper < 0.01


def test_a_higher_rent_never_lowers_the_chance_of_owning():
    chances = [
        risk.simulate(CASE, Rent(usd(price)), seed=5).own_cheaper for price in ("3", "4", "5", "6")
    ]
    assert chances == sorted(chances)


def test_flexibility_has_a_value_while_demand_is_uncertain_and_none_when_it_is_not():
    """Renting is the safe side while size and frequency are unknown: the option to decide later is worth money."""
    unsure = RiskInputs(demand_growth=Range(-0.55, 0.1, 1.0), utilisation=Range(0.3, 0.5, 0.7))
    near = Rent(usd("5.20"))
    long_life = replace(CASE, years=5)
    with_doubt = risk.simulate(long_life, near, seed=11, inputs=unsure)
    assert with_doubt.flexibility.amount > 0
    assert 0.05 < with_doubt.buy_after_wait < 0.95
    sure = risk.simulate(CASE, RENT, seed=11, inputs=CERTAIN)
    assert sure.flexibility.amount == 0


def test_the_decision_after_a_year_is_no_clairvoyant():
    result = risk.simulate(CASE, RENT, seed=13)
    assert result.choice("wait").mean_regret.amount > 0
    assert result.waiting <= result.flexibility


def test_tornado_is_longest_first_and_moves_the_right_way():
    result = risk.simulate(CASE, RENT, seed=1)
    swings = [bar.swing.amount for bar in result.tornado]
    assert swings == sorted(swings, reverse=True)
    bars = {bar.name: bar for bar in result.tornado}
    assert set(bars) == set(risk.NAMES)
    assert bars["utilisation"].at_p90 < bars["utilisation"].at_p10  # busier favours owning
    assert (
        bars["price_decline"].at_p10 < bars["price_decline"].at_p90
    )  # falling rents favour renting
    assert bars["tariff_drift"].at_p10 < bars["tariff_drift"].at_p90


def test_waiting_for_delivery_is_rented():
    quick = risk.simulate(replace(CASE, lead_weeks=0), RENT, seed=1, inputs=CERTAIN)
    slow = risk.simulate(replace(CASE, lead_weeks=44), RENT, seed=1, inputs=CERTAIN)
    assert quick.choice("own").mean < slow.choice("own").mean
    assert quick.choice("rent").mean == slow.choice("rent").mean


def test_a_range_is_drawn_with_its_own_quantiles():
    drawn = Range(-0.1, 0.2, 0.6).quantile(np.linspace(0, 1, 100_001))
    assert np.quantile(drawn, (0.1, 0.5, 0.9)) == pytest.approx((-0.1, 0.2, 0.6), abs=1e-4)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: RiskInputs(utilisation=Range(0.5, 0.9, 1.1)), "utilisation"),
        (lambda: RiskInputs(utilisation=Range(0.7, 0.6, 0.8)), "utilisation"),
        (lambda: RiskInputs(price_decline=Range(0.0, 0.5, 0.95)), "price_decline"),
        (lambda: risk.simulate(CASE, RENT, seed=1, paths=10), "paths"),
        (lambda: risk.simulate(default_case(DGX, 1, years=1), RENT, seed=1), "years"),
        (lambda: risk.simulate(CASE, Rent(Money(Decimal(5), "CNY")), seed=1), "rent"),
        (lambda: Reservation(usd("-1"), 3), "reservation.per_card_hour"),
    ],
)
def test_bad_input_names_the_field(call, field):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field
