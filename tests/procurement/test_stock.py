"""Which owned cards a study may offer for reuse."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.organisation import today
from planning.stock import idle_stock
from procurement.models import Asset
from procurement.selectors.stock import free_cards
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


def test_cards_are_free_when_their_need_is_over():
    s = b.shop()
    b.accepted(s)
    cards = Asset.objects.filter(status="in_service", kind="accelerator")
    without_end = free_cards(today())
    assert sum(stock.cards for stock in without_end) == cards.count() > 0
    assert sum(stock.free for stock in free_cards(today() + timedelta(days=3000))) == 0

    # as if they had been bought for a need of 30 days
    cards.update(request=b.request(s, duration_days=30))

    assert sum(stock.free for stock in free_cards(today() + timedelta(days=30))) == 0
    over = free_cards(today() + timedelta(days=32))
    assert sum(stock.free for stock in over) == cards.count()
    assert idle_stock(today() + timedelta(days=32)) == over


def test_cards_that_are_not_accepted_are_not_stock():
    s = b.shop()
    b.received(s)
    assert free_cards(today()) == []
