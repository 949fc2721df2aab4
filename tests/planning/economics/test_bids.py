import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

from core.errors import InputError
from core.money import Money
from planning.economics import bids, price_history
from planning.economics.bids import BidJob

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def cny(amount: str) -> Money:
    return Money(Decimal(amount), "CNY")


def night_prices(days: int = 14) -> str:
    """150 an hour on demand; 35 at night and at weekends, 100 by day."""
    rows = ["timestamp,price,currency"]
    for hour in range(days * 24):
        at = MONDAY + timedelta(hours=hour)
        quiet = at.weekday() >= 5 or at.hour < 8 or at.hour >= 20
        rows.append(f"{at.isoformat()},{35 if quiet else 100},CNY")
    return "\n".join(rows)


def night_history() -> price_history.PriceHistory:
    return price_history.history(price_history.parse_csv(night_prices()))


JOB = BidJob(work_hours=60, checkpoint_hours=0.05, interval_hours=2, restart_hours=0.25)


def test_a_ceiling_of_60_percent_buys_only_the_nights_and_weekends_at_35():
    (rung,) = bids.ladder(night_history(), JOB, cny("150"), [0.6])
    assert rung.ceiling == cny("90.0")
    assert bids.suggested_ceiling(cny("150")) == rung.ceiling
    assert float(rung.mean_price.amount) == pytest.approx(35)
    assert rung.interruptions == 5
    assert rung.finish is not None
    assert rung.saving > 0.7
    assert float(rung.cost.amount) == pytest.approx(rung.hours_bought * 35, abs=0.01)


def test_a_higher_ceiling_finishes_earlier_and_pays_more_an_hour():
    rungs = bids.ladder(night_history(), JOB, cny("150"), [0.2, 0.6, 0.7])
    assert rungs[0].hours_bought == 0
    assert rungs[0].mean_price is None
    assert rungs[0].finish is None
    assert rungs[0].saving is None
    assert rungs[2].finish < rungs[1].finish
    assert rungs[2].interruptions == 0
    assert rungs[2].mean_price.amount > rungs[1].mean_price.amount
    # 60 h of work and a checkpoint after each 2 h but the last
    assert rungs[2].hours_bought == pytest.approx(60 + 29 * 0.05)
    assert rungs[2].finish == MONDAY + timedelta(hours=61.45)


def test_progress_since_the_last_checkpoint_is_lost_unless_there_is_notice():
    long_interval = BidJob(1000, 0.05, 5, 0.25)
    warned = BidJob(1000, 0.05, 5, 0.25, notice_hours=0.1)
    (lost,) = bids.ladder(night_history(), long_interval, cny("150"), [0.6])
    (kept,) = bids.ladder(night_history(), warned, cny("150"), [0.6])
    assert lost.work_done < kept.work_done
    assert lost.finish is kept.finish is None


def test_nights_and_weekends_are_cheapest():
    means = price_history.hour_of_week_means(night_history())
    assert means[3] == 35
    assert means[12] == 100
    assert means[5 * 24 + 12] == 35
    shifted = price_history.hour_of_week_means(night_history(), utc_offset_hours=8)
    assert shifted[12] == 35  # 12:00 in China is 4:00 UTC


def test_jobs_that_may_not_be_interrupted_do_not_bid():
    online = BidJob(10, 0.1, 1, 0.1, online=True)
    assert "online" in str(online.refused)
    with pytest.raises(InputError) as error:
        bids.ladder(night_history(), online, cny("150"))
    assert error.value.field == "payment_mode"


def aws(rows: list[tuple[str, str, str]]) -> str:
    return json.dumps(
        {
            "SpotPriceHistory": [
                {
                    "AvailabilityZone": zone,
                    "InstanceType": "p5.48xlarge",
                    "ProductDescription": "Linux/UNIX",
                    "SpotPrice": price,
                    "Timestamp": at,
                }
                for zone, at, price in rows
            ]
        }
    )


def test_aws_change_points_newest_first():
    text = aws(
        [
            ("us-east-1a", "2026-11-03T07:00:00+00:00", "19.2000"),
            ("us-east-1a", "2026-11-02T12:30:00Z", "18.6838"),
            ("us-east-1a", "2026-11-02T01:00:00.000Z", "17.0000"),
        ]
    )
    prices = price_history.history(price_history.parse_json(text))
    assert prices.currency == "USD"
    assert prices.price.tolist() == [17.0, 18.6838, 19.2]
    assert prices.hour.tolist() == [0, 11.5, 30]
    assert prices.end_hour == pytest.approx(30 + np.median([11.5, 18.5]))


def test_alibaba_history_carries_its_currency():
    text = json.dumps(
        {
            "Currency": "CNY",
            "SpotPrices": {
                "SpotPriceType": [
                    {
                        "ZoneId": "cn-beijing-a",
                        "InstanceType": "ecs.gn7e-c16g1.4xlarge",
                        "NetworkType": "vpc",
                        "SpotPrice": 12.5,
                        "Timestamp": f"2026-11-02T0{hour}:00:00Z",
                    }
                    for hour in range(3)
                ]
            },
        }
    )
    prices = price_history.history(price_history.parse_json(text))
    assert prices.currency == "CNY"
    assert prices.end_hour == 3


def test_several_zones_must_be_chosen_from():
    points = price_history.parse_json(
        aws(
            [
                ("us-east-1a", "2026-11-02T00:00:00Z", "1"),
                ("us-east-1a", "2026-11-02T05:00:00Z", "2"),
                ("us-east-1b", "2026-11-02T00:00:00Z", "3"),
            ]
        )
    )
    with pytest.raises(InputError) as error:
        price_history.history(points)
    assert error.value.field == "series"
    chosen = price_history.history(points, series="us-east-1a p5.48xlarge Linux/UNIX")
    assert chosen.price.tolist() == [1, 2]


def broken(text: str) -> str:
    with pytest.raises(InputError) as error:
        price_history.history(price_history.parse_csv(text))
    assert error.value.value is not None
    return error.value.field


def test_a_gap_in_an_hourly_history_is_refused():
    lines = night_prices().splitlines()
    del lines[40:43]
    with pytest.raises(InputError, match=r"gap of 4\.0 h"):
        price_history.history(price_history.parse_csv("\n".join(lines)))


def test_a_long_silence_in_change_points_is_refused_unless_allowed():
    points = price_history.parse_json(
        aws(
            [
                ("us-east-1a", "2026-11-02T00:00:00Z", "1"),
                ("us-east-1a", "2026-11-02T05:00:00Z", "2"),
                ("us-east-1a", "2026-11-09T05:00:00Z", "2"),
            ]
        )
    )
    with pytest.raises(InputError, match=r"gap of 168\.0 h"):
        price_history.history(points)
    assert price_history.history(points, max_gap_hours=200).hour[-1] == 173


@pytest.mark.parametrize(
    ("rows", "field"),
    [
        (["2026-11-02,1,CNY", "2026-11-03,1,USD"], "history.currency"),
        (["2026-11-02,1,CNY", "2026-11-02,2,CNY"], "history"),
        (["2026-11-02,1,CNY"], "history"),
        (["2026-11-02,-1,CNY"], "history line 2: price"),
        (["2026-11-02,much,CNY"], "history line 2: price"),
        (["yesterday,1,CNY"], "history line 2: timestamp"),
        (["2026-11-02,1,"], "history line 2: currency"),
    ],
)
def test_broken_rows_are_named(rows, field):
    assert broken("\n".join(["timestamp,price,currency", *rows])) == field


@pytest.mark.parametrize("text", ["{", "[]", '{"SpotPriceHistory": [{"SpotPrice": "1"}]}'])
def test_foreign_json_is_refused(text):
    with pytest.raises(InputError) as error:
        price_history.parse_json(text)
    assert error.value.field.startswith("history")


def test_a_file_without_the_columns_is_refused():
    assert broken("time,cost\n1,2") == "history.header"
