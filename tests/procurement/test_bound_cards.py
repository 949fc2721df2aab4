"""What of a request is bought already: the portfolio does not ask for it again."""

from __future__ import annotations

import pytest

from planning.supply import bound_cards
from procurement.models import OrderLine
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


def test_ordered_cards_count_for_their_request_and_a_line_closed_short_for_what_came():
    s = b.shop()
    order = b.issued(s)
    line = order.lines.exclude(request=None).get(accelerators_per_item__gt=0)
    ordered = int(line.quantity * line.accelerators_per_item)
    key = (line.request_id, line.accelerator_slug)

    assert ordered > 0
    assert bound_cards([line.request_id])[key] == ordered
    assert bound_cards([]) == {}

    OrderLine.objects.filter(pk=line.pk).update(short_closed=True)
    assert bound_cards([line.request_id])[key] == 0


def test_a_draft_order_binds_nothing():
    s = b.shop()
    line = b.awarded(s).orders.get().lines.exclude(request=None).first()
    assert not bound_cards([line.request_id])
