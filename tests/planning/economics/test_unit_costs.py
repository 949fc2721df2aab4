from decimal import Decimal

import pytest

from core.errors import InputError
from core.money import Money
from planning.economics import unit_costs as uc


def cny(amount: str) -> Money:
    return Money(Decimal(amount), "CNY")


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


def test_training_cost_is_price_per_hour_times_hours():
    assert uc.training_cost(cny("166.6667"), 72.0) == cny("12000.00")


def test_previous_generation_takes_62_h_and_costs_35_percent_less():
    compared = uc.compare_generations(cny("100"), 48.0, cny("50.3"), 62.0)
    assert compared.flagship_cost == cny("4800.00")
    assert compared.previous_cost == cny("3118.60")
    assert compared.saving == pytest.approx(0.35, abs=0.001)
    assert 0.70 <= compared.speed_ratio <= 0.80
    assert len(compared.notes) == 1  # both ratios are usual


def test_previous_generation_loses_when_its_price_ratio_passes_its_speed_ratio():
    compared = uc.compare_generations(cny("100"), 48.0, cny("80"), 62.0)
    assert compared.saving < 0
    assert "price ratio" in str(compared.notes[1])


def test_service_case_c_wins_and_needs_twelve_cards_with_headroom():
    options = (
        uc.ServiceOption("A", 80_000, cny("15000"), 0.180),
        uc.ServiceOption("B", 60_000, cny("6000"), 0.320, 0.007),
        uc.ServiceOption("C", 100_000, cny("6000"), 0.280, 0.007),
    )
    costs = uc.service_costs(
        options, calls_per_day=1e6, latency_limit=0.5, accuracy_loss_limit=0.01
    )
    by_name = {cost.option.name: cost for cost in costs}
    assert costs[0].option.name == "C"
    assert [by_name[n].cards for n in "ABC"] == [13, 17, 10]
    assert [by_name[n].monthly for n in "ABC"] == [
        cny("195000.00"),
        cny("102000.00"),
        cny("60000.00"),
    ]
    assert uc.change(by_name["A"].monthly, by_name["C"].monthly).saving == pytest.approx(
        0.69, abs=0.005
    )
    assert by_name["C"].cards_with_headroom == 12
    assert by_name["C"].monthly_with_headroom == cny("72000.00")


def test_service_options_over_a_limit_come_last_with_the_reason():
    options = (
        uc.ServiceOption("slow", 1e6, cny("1"), 0.6),
        uc.ServiceOption("rough", 1e6, cny("1"), 0.1, 0.02),
        uc.ServiceOption("good", 1e4, cny("6000"), 0.3),
    )
    costs = uc.service_costs(
        options, calls_per_day=1e6, latency_limit=0.5, accuracy_loss_limit=0.01
    )
    assert costs[0].option.name == "good"
    assert {str(c.refused) for c in costs[1:]} == {
        "600 ms is not below the limit of 500 ms",
        "It loses 2.0 % of accuracy; at most 1.0 % is allowed",
    }


def test_quantisation_from_450_to_120_ms_cuts_a_call_by_73_percent():
    cost, latency = uc.after_quantisation(cny("0.003"), 0.450, 450 / 120)
    assert latency == pytest.approx(0.120)
    assert cost.amount == pytest.approx(Decimal("0.0008"), abs=Decimal("1e-9"))
    assert uc.change(cny("0.003"), cost).saving == pytest.approx(0.733, abs=0.001)


def test_batching_cuts_cards_by_60_percent_and_the_bill_by_55_only_with_fixed_costs():
    """20 high-end to 8 mid cards. On cards alone it saves 84 %; 55 % means 158 k a month that does not scale."""
    cards = uc.change(cny("15000") * 20, cny("6000") * 8)
    assert 1 - 8 / 20 == pytest.approx(0.60)
    assert cards.saving == pytest.approx(0.84)
    fixed = cny("158182")
    with_fixed = uc.change(cards.before + fixed, cards.after + fixed)
    assert with_fixed.saving == pytest.approx(0.55, abs=0.001)


def test_l4_and_l40s_against_t4_cost_30_percent_more_a_card_and_a_third_a_call():
    before = uc.per_call(cny("10"), 1000.0)
    after = uc.per_call(cny("13"), 4000.0)
    assert uc.change(before, after).saving == pytest.approx(0.675)


def test_cheaper_by_5000_but_good_for_one_year_loses():
    cheap = uc.per_useful_year(cny("65000"), 1)
    dear = uc.per_useful_year(cny("70000"), 3)
    assert cheap == cny("65000.00")
    assert dear == cny("23333.33")


@pytest.mark.parametrize(
    ("latency", "tier", "price_range"),
    [
        (0.1, uc.ServingTier.FAST, (0.002, 0.005)),
        (0.5, uc.ServingTier.BALANCED, (0.0005, 0.002)),
        (5.0, uc.ServingTier.ECONOMY, (0.0001, 0.0005)),
    ],
)
def test_three_tiers(latency, tier, price_range):
    assert uc.serving_tier(latency) is tier
    assert uc.tier_price_range(tier) == price_range


def test_cost_of_a_million_tokens_and_of_a_pflop_hour():
    full = uc.per_million_tokens(usd("3.6"), 1000.0)
    assert full.amount == Decimal("1")
    assert uc.per_million_tokens(usd("3.6"), 1000.0, utilisation=0.25).amount == Decimal("4")
    # H100: 989e12 dense at 40 %: 0.3956 effective PFLOP/s
    assert float(uc.per_pflop_hour(usd("3"), 989e12, 0.4).amount) == pytest.approx(3 / 0.3956)


def test_data_reads_are_half_of_the_bill_and_a_cache_cuts_them_by_80_percent():
    prices = uc.DataPrices(
        read_gb=usd("0.02"), cache_gb_month=usd("0.10"), snapshot_gb_month=usd("0.05")
    )
    compute = usd("4000")
    without = uc.data_lines(uc.DataUse(dataset_gb=10_000, epochs=20), prices, "USD")
    cached = uc.data_lines(
        uc.DataUse(dataset_gb=10_000, epochs=20, months=0.5, cached=True, snapshots_gb=4_000),
        prices,
        "USD",
    )
    before = sum((x.amount.amount for x in without), Decimal(0))
    after = sum((x.amount.amount for x in cached), Decimal(0))
    assert before / (before + compute.amount) == Decimal("0.5")
    assert float(1 - after / before) == pytest.approx(0.80)
    assert float(1 - (after + compute.amount) / (before + compute.amount)) == pytest.approx(0.40)


def test_egress_by_tiers_with_free_allowance():
    tiers = ((Decimal(10_000), Decimal("0.09")), (None, Decimal("0.085")))
    prices = uc.DataPrices(egress_tiers=tiers, egress_free_gb=Decimal(100))
    (line,) = uc.data_lines(uc.DataUse(egress_gb=12_100), prices, "USD")
    assert line.amount == usd("1070.00")


def test_a_missing_price_is_not_free():
    with pytest.raises(InputError) as error:
        uc.data_lines(uc.DataUse(egress_gb=1.0), uc.DataPrices(), "USD")
    assert error.value.field == "prices.egress"


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: uc.training_cost(cny("-1"), 1.0), "price_per_hour"),
        (lambda: uc.training_cost(cny("1"), float("nan")), "hours"),
        (lambda: uc.per_million_tokens(cny("1"), 10.0, utilisation=1.2), "utilisation"),
        (lambda: uc.per_pflop_hour(cny("1"), 1e15, 0.0), "mfu"),
        (lambda: uc.per_useful_year(cny("1"), 0), "useful_years"),
        (lambda: uc.after_quantisation(cny("1"), 1.0, 0.5), "speedup"),
        (lambda: uc.change(cny("1"), usd("1")), "after"),
    ],
)
def test_bad_input_names_field_value_and_limit(call, field):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field
    assert error.value.limit is not None
