from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.money import Money
from planning.economics import portfolio
from planning.economics.portfolio import OwnedPool, TeamRequest


def team(name: str, cards: list[float]) -> TeamRequest:
    return TeamRequest(name, np.array(cards, dtype=float))


DAY = team("vision", [40, 40, 4, 4])
NIGHT = team("language", [4, 4, 60, 60])


def test_the_sum_of_peaks_is_not_the_peak_of_sums():
    found = portfolio.pool([DAY, NIGHT], price_per_card=Money(Decimal(49_000), "USD"))
    assert found.sum_of_peaks == 48 + 72  # 20 % headroom on 40 and 60
    assert found.peak_of_sums == 77  # 1.2 x 64
    assert found.shared_saving == pytest.approx(1 - 77 / 120)
    assert found.to_buy == 77
    assert found.saved == Money(Decimal("2107000.00"), "USD")


def test_idle_owned_capacity_comes_before_buying():
    owned = [OwnedPool("old hall", 64, np.array([32, 32, 0, 0]))]
    found = portfolio.pool([DAY, NIGHT], owned)
    # hours 0-1: 52.8 - 32 free = 20.8; hours 2-3: 76.8 - 64 free = 12.8
    assert found.to_buy == 21
    assert found.met_by_idle == 56
    assert found.idle_owned == 32
    assert "use these first" in str(found.messages[1])
    everything = portfolio.pool([DAY], [OwnedPool("hall", 64, np.zeros(4))])
    assert everything.to_buy == 0
    assert str(everything.messages[-1]) == "Nothing has to be bought"


series = st.lists(st.integers(0, 200), min_size=6, max_size=6)


@given(st.lists(series, min_size=1, max_size=5), st.integers(0, 300))
@settings(max_examples=60, deadline=None)
def test_pooling_never_takes_more_and_idle_never_raises_the_need(demands, idle):
    requests = [team(f"t{i}", demand) for i, demand in enumerate(demands)]
    found = portfolio.pool(requests, [OwnedPool("hall", idle, np.zeros(6))])
    assert found.to_buy <= found.peak_of_sums <= found.sum_of_peaks
    assert found.to_buy >= found.peak_of_sums - idle


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: portfolio.pool([]), "requests"),
        (lambda: portfolio.pool([team("a", [1, -1])]), "requests.a[1]"),
        (lambda: portfolio.pool([team("a", [1]), team("b", [1, 2])]), "hours"),
        (lambda: OwnedPool("hall", 4, np.array([5.0])), "owned.hall.used[0]"),
    ],
)
def test_bad_input_names_the_field(call, field):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field
