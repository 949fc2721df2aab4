from datetime import date
from decimal import Decimal

import pytest

from core.errors import InputError
from core.money import Money
from planning.economics import exact, offers
from planning.economics.ownership import evaluate
from planning.economics.ownership_case import default_case
from planning.economics.types import Offer, PaymentMode, ServerPlatform

AS_OF = date(2026, 11, 1)


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


P5 = Offer(
    "aws",
    "us-east-1",
    "p5.48xlarge",
    "h100",
    8,
    PaymentMode.ON_DEMAND,
    usd("55.04"),
    AS_OF,
    "price list",
)


def test_a_term_pays_the_default_share_and_says_that_it_is_derived():
    one = offers.reserved_from_on_demand(P5, PaymentMode.RESERVED_1Y)
    three = offers.reserved_from_on_demand(P5, PaymentMode.RESERVED_3Y, 0.45)
    assert one.price.amount == Decimal("37.4272")
    assert one.commitment_months == 12
    assert one.confidence == "derived"
    assert three.source == "0.45 x on demand; price list"
    assert offers.saving(three, P5) == pytest.approx(0.55)
    assert exact.charge(one, accelerators=8, hours=100).total == usd("327862.27")


def test_a_subscription_is_paid_by_whole_months():
    monthly = offers.subscription(P5, usd("21900"))
    assert exact.charge(monthly, accelerators=8, hours=100).total == usd("21900.00")
    assert exact.charge(monthly, accelerators=8, hours=731).total == usd("43800.00")


def test_owned_cards_stand_beside_rented_ones():
    server = ServerPlatform("dgx-h100", "DGX H100", "h100", 8, usd("310000"), 10.2, 8)
    owned = evaluate(default_case(server, 13))
    offer = offers.owned_offer(owned, name="own hall", as_of=AS_OF)
    assert offer.mode is PaymentMode.OWNED
    assert not offer.public_cloud
    assert offers.saving(offer, P5) == pytest.approx(
        1 - float(owned.per_accelerator_hour.amount) / 6.88
    )


def test_a_spot_price_equal_to_on_demand_means_missing():
    spot = Offer("x", "y", "z", "h100", 8, PaymentMode.SPOT, usd("55.04"), AS_OF)
    assert not offers.spot_is_known(spot, P5)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: offers.reserved_from_on_demand(P5, PaymentMode.SPOT), "mode"),
        (lambda: offers.reserved_from_on_demand(P5, PaymentMode.RESERVED_1Y, 1.2), "factor"),
        (
            lambda: offers.reserved_from_on_demand(
                offers.subscription(P5, usd("1")), PaymentMode.RESERVED_1Y
            ),
            "offer.mode",
        ),
        (lambda: offers.subscription(P5, usd("-1")), "per_month"),
        (lambda: offers.subscription(P5, usd("1"), months=0), "months"),
    ],
)
def test_bad_input_names_the_field(call, field):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.field == field
