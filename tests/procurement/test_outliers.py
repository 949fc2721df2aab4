"""Outliers of a batch by median and MAD."""

from hypothesis import given
from hypothesis import strategies as st

from procurement.outliers import outliers

EVEN = {n: 512_000.0 + n * 50 for n in range(7)}


def test_a_slow_card_stands_out_and_even_ones_do_not():
    found = outliers({**EVEN, "slow": 444_451.0})
    assert set(found) == {"slow"}
    assert found["slow"].share < -0.13


def test_less_than_four_units_are_no_batch():
    assert outliers({"a": 1.0, "b": 1.0, "c": 100.0}) == {}


def test_when_most_are_equal_two_per_cent_decide():
    same = dict.fromkeys("abcdefg", 67.0)
    assert set(outliers({**same, "hot": 70.0})) == {"hot"}
    assert outliers({**same, "warm": 68.0}) == {}


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=40), st.floats(0.001, 1000))
def test_the_unit_of_measure_does_not_matter(values, scale):
    keyed = dict(enumerate(values))
    scaled = {key: value * scale for key, value in keyed.items()}
    near = {key for key, value in keyed.items() if value}
    assert set(outliers(keyed)) <= near
    more = {key: entry.share for key, entry in outliers(scaled).items()}
    for key, entry in outliers(keyed).items():
        if key in more:
            assert abs(more[key] - entry.share) < 1e-6
