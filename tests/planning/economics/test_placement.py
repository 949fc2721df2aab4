from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.money import Money
from planning.economics import placement
from planning.economics.placement import Kind, Pool, Workload
from planning.economics.types import PaymentMode


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


def pools(owned: float = 32, reserved: float = 16, spot: float = 64, months: int = 3) -> list[Pool]:
    return [
        Pool("owned", PaymentMode.OWNED, "h100", usd("0.40"), (owned,) * months, latency=0.002),
        Pool(
            "reserved",
            PaymentMode.RESERVED_1Y,
            "h100",
            usd("2.70"),
            (reserved,) * months,
            latency=0.02,
        ),
        Pool(
            "on demand", PaymentMode.ON_DEMAND, "h100", usd("4.00"), (500,) * months, latency=0.02
        ),
        Pool(
            "spot",
            PaymentMode.SPOT,
            "h100",
            usd("1.50"),
            (spot,) * months,
            latency=0.02,
            stretch=1.1,
        ),
    ]


CORE = Workload("chat", Kind.CORE, (24, 24, 24))
TRAINING = Workload("training", Kind.ELASTIC, (40, 80, 0), 500, checkpointable=True)
BURST = Workload("launch", Kind.BURST, (0, 0, 60), 100)


def cards(found: placement.Placement, workload: str, pool: str) -> tuple[float, ...]:
    for item in found.assignments:
        if (item.workload, item.pool) == (workload, pool):
            return item.cards
    return (0.0, 0.0, 0.0)


def test_core_goes_to_owned_elastic_to_spot_and_bursts_to_on_demand():
    found = placement.place([CORE, TRAINING, BURST], pools())
    assert found.complete
    assert cards(found, "chat", "owned") == (24, 24, 24)
    # what owned cards are left, then spot (64 cards do the work of 58), then the rest
    assert cards(found, "training", "owned") == pytest.approx((8, 8, 0))
    assert cards(found, "training", "spot") == pytest.approx((32, 64 / 1.1, 0))
    assert cards(found, "launch", "on demand")[2] == pytest.approx(60 - 8 - 16)
    assert sum(line.amount.amount for line in found.sheet.lines) == found.sheet.total.amount


def test_the_most_valuable_full_pool_is_named_with_what_more_room_would_save():
    found = placement.place([CORE, TRAINING], pools())
    assert found.binding[0].pool == "owned"
    assert found.binding[0].saving.amount > 0
    assert "would save" in str(found.binding[0].message)
    eased = placement.place([CORE, TRAINING], pools(owned=40))
    gain = found.sheet.total.amount - eased.sheet.total.amount
    assert float(found.binding[0].saving.amount) == pytest.approx(float(gain), abs=0.05)


def test_data_that_may_not_leave_keeps_out_of_public_clouds_whatever_they_cost():
    secret = Workload("patients", Kind.ELASTIC, (20, 20, 20), may_leave=False, checkpointable=True)
    dear = [
        Pool("owned", PaymentMode.OWNED, "h100", usd("50"), (32,) * 3),
        Pool("cloud", PaymentMode.ON_DEMAND, "h100", usd("0.01"), (500,) * 3),
    ]
    found = placement.place([secret], dear)
    assert cards(found, "patients", "owned") == (20, 20, 20)
    assert [(x.pool, "whatever it costs" in str(x.reason)) for x in found.exclusions] == [
        ("cloud", True)
    ]


def test_what_has_no_place_is_reported_with_what_stands_in_the_way():
    secret = Workload("patients", Kind.ELASTIC, (20, 50, 20), may_leave=False)
    found = placement.place([secret], pools())
    assert not found.complete
    (short,) = found.shortfalls
    assert short.cards == pytest.approx((0, 18, 0))
    assert (
        str(short.reason) == "patients is short of 18.0 cards in month 2: no room is left in owned"
    )
    assert found.binding[0].pool == "owned"
    assert "8.0 card-months" in str(found.binding[0].message)
    homeless = Workload("asic", Kind.ELASTIC, (1, 1, 1), accelerators=frozenset({"tpu"}))
    (short,) = placement.place([homeless], pools()).shortfalls
    assert str(short.reason).startswith("No pool may take asic. It does not run on ")
    kept = Workload("kept", Kind.ELASTIC, (1, 1, 1), may_leave=False)
    clouds = [pool for pool in pools() if pool.mode is not PaymentMode.OWNED]
    (short,) = placement.place([kept], clouds).shortfalls
    assert str(short.reason) == (
        "No pool may take kept. Its data may not leave the organisation: "
        "public cloud is out, whatever it costs"
    )


def test_an_online_service_stays_whole_and_off_spot():
    wide = Workload("chat", Kind.CORE, (24, 40, 24))
    found = placement.place([wide], pools())
    assert [item.pool for item in found.assignments] == ["on demand"]  # owned holds 32, reserved 16
    assert {x.pool for x in found.exclusions} == {"spot"}


def test_latency_and_accelerators_exclude():
    near = Workload("voice", Kind.CORE, (4, 4, 4), latency_limit=0.01)
    assert "20.0 ms of the 10.0 ms" in str(placement.exclusion(near, pools()[1]))
    assert placement.exclusion(near, pools()[0]) is None
    picky = Workload("x", Kind.BURST, (1, 1, 1), accelerators=frozenset({"mi300x"}))
    assert "does not run on h100" in str(placement.exclusion(picky, pools()[2]))


def test_a_fixed_price_is_paid_only_in_months_of_use():
    with_fixed = [
        Pool(
            "leased",
            PaymentMode.LEASED,
            "h100",
            usd("0"),
            (50, 50, 50),
            fixed_per_month=usd("9000"),
        ),
        Pool("cloud", PaymentMode.ON_DEMAND, "h100", usd("4"), (500,) * 3),
    ]
    work = Workload("w", Kind.ELASTIC, (50, 1, 0))
    found = placement.place([work], with_fixed)
    assert found.sheet.amount("fixed/leased") == usd("9000.00")
    assert cards(found, "w", "cloud") == (0, 1, 0)


@given(st.lists(st.integers(0, 60), min_size=3, max_size=3), st.integers(1, 300))
@settings(max_examples=15, deadline=None)
def test_a_dearer_pool_never_lowers_the_cost(wanted, more):
    work = Workload("w", Kind.ELASTIC, tuple(float(x) for x in wanted), checkpointable=True)
    before = pools()
    dearer = [*before]
    dearer[3] = Pool(
        "spot",
        PaymentMode.SPOT,
        "h100",
        usd(str(1.5 + more / 100)),
        (64,) * 3,
        latency=0.02,
        stretch=1.1,
    )
    low, high = placement.place([work], before), placement.place([work], dearer)
    assert low.sheet.total.amount <= high.sheet.total.amount + Decimal("0.05")


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: placement.place([], pools()), "placement"),
        (lambda: placement.place([CORE, CORE], pools()), "workloads"),
        (lambda: placement.place([Workload("w", Kind.CORE, (1, 1))], pools()), "months"),
        (lambda: Workload("w", Kind.CORE, (1, -1)), "workloads.w.cards[1]"),
        (lambda: Workload("w", Kind.CORE, (1,), 800), "workloads.w.hours_per_month"),
        (lambda: Pool("p", PaymentMode.SPOT, "h", usd("-1"), (1,)), "pools.p.per_card_hour"),
        (lambda: Pool("p", PaymentMode.SPOT, "h", usd("1"), (1,), stretch=0.5), "pools.p.stretch"),
    ],
)
def test_bad_input_names_the_field(call, field):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field


def test_a_reserved_year_is_paid_for_its_fullest_month_and_taken_where_it_is_used_enough():
    term = usd(str(2 * 730 * 12))  # 2 an hour for a year
    reserved = Pool(
        "reserved", PaymentMode.RESERVED_1Y, "h100", usd("0"), (1e6,) * 12, committed=term
    )
    demand = Pool("demand", PaymentMode.ON_DEMAND, "h100", usd("4"), (1e6,) * 12)
    steady = Workload("steady", Kind.ELASTIC, (8.0,) * 12)
    short = Workload("short", Kind.ELASTIC, (8.0,) * 3 + (0.0,) * 9)

    found = placement.place([steady], [reserved, demand])
    assert cards(found, "steady", "reserved") == (8.0,) * 12
    assert found.sheet.total.amount == 8 * 2 * 730 * 12
    assert found.sheet.amount("committed/reserved").amount == 8 * 2 * 730 * 12

    brief = placement.place([short], [reserved, demand])
    assert cards(brief, "short", "demand")[:3] == (8.0,) * 3
    assert brief.sheet.total.amount == 8 * 4 * 730 * 3

    # Two that follow each other share the cards of one commitment.
    after = Workload("after", Kind.ELASTIC, (0.0,) * 3 + (8.0,) * 9)
    both = placement.place([short, after], [reserved, demand])
    assert both.sheet.total.amount == 8 * 2 * 730 * 12


def test_data_that_may_not_leave_the_country_stays_in_pools_that_stand_there():
    abroad = Pool("abroad", PaymentMode.ON_DEMAND, "h100", usd("1"), (64.0,), country="US")
    home = Pool("home", PaymentMode.ON_DEMAND, "h100", usd("5"), (64.0,), country="CN")
    unknown = Pool("unknown", PaymentMode.ON_DEMAND, "h100", usd("1"), (64.0,))
    kept = Workload("kept", Kind.ELASTIC, (8.0,), country="CN")

    found = placement.place([kept], [abroad, home, unknown])

    assert cards(found, "kept", "home") == (8.0,)
    assert {one.pool for one in found.exclusions} == {"abroad", "unknown"}
    assert "Its data may not leave CN; this pool stands in US" in str(found.exclusions[0].reason)
