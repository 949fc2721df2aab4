"""Warranties and commitments that end, read for the review from real orders."""

from datetime import date, timedelta

import pytest

from core.models import Organisation
from core.quarters import Quarter
from planning.actuals import TERMS_AHEAD
from procurement.models import Asset, AssetWarranty
from procurement.selectors.actuals import quarter_actuals
from procurement.selectors.ending import warranty_ends
from procurement.states import AssetStatus
from tests.procurement.builders import accepted, shop

pytestmark = pytest.mark.django_db


def test_units_are_counted_by_order_and_last_day_and_what_is_not_known_is_said(
    django_assert_num_queries,
):
    s = shop()
    accepted(s)
    period = Quarter.of(max(Asset.objects.values_list("received_on", flat=True)), 1)
    last = period.end + timedelta(days=10)
    AssetWarranty.objects.update(starts_on=period.start, ends_on=last)
    n = Asset.objects.count()
    with django_assert_num_queries(4):
        found, holes = warranty_ends(period)
    assert sum(row.units for row in found) == n
    assert {row.last_day for row in found} == {last}
    assert all(row.order.startswith("PO-") and row.vendor for row in found)
    assert holes == ()

    one, two, three = Asset.objects.order_by("pk")[:3]
    one.warranties.update(starts_on=None, ends_on=None)
    two.warranties.all().delete()
    Asset.objects.filter(pk=three.pk).update(status=AssetStatus.RETIRED)
    found, holes = warranty_ends(period)
    assert sum(row.units for row in found) == n - 3
    assert [hole.params["n"] for hole in holes] == [1, 1]
    actuals = quarter_actuals(period=period, organisation=Organisation.objects.get())
    assert (actuals.warranties, actuals.holes) == (found, holes)
    assert actuals.to_json()["warranties"][0]["last_day"] == last.isoformat()


def test_a_cover_that_ended_before_the_quarter_or_ends_far_after_it_is_not_listed():
    accepted(shop())
    period = Quarter.of(max(Asset.objects.values_list("received_on", flat=True)), 1)
    beyond = period.end + TERMS_AHEAD
    for ends_on, listed in [
        (period.start - timedelta(days=1), False), (period.start, True), (beyond - timedelta(days=1), True),
        (beyond, False),
    ]:  # fmt: skip
        AssetWarranty.objects.update(starts_on=date(2020, 1, 1), ends_on=ends_on)
        assert bool(warranty_ends(period)[0]) is listed, ends_on
