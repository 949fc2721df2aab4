"""Loading the shipped facts: complete, repeatable, honest about what it leaves out."""

from datetime import date
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from catalog import reference, selectors
from catalog.models import (
    Accelerator,
    AcceleratorSpec,
    CloudOffer,
    ModelArchitecture,
    OfferPrice,
    Origin,
    PriceRecord,
    ServerPlatform,
    TcoDefault,
)
from catalog.services.loading import load_reference, offer_slug, usable_spot
from catalog.services.revisions import ACCELERATOR, add_revision
from core.models import AppendOnlyError, ExchangeRate

pytestmark = pytest.mark.django_db


def test_loads_every_row_of_the_files(loaded):
    assert Accelerator.objects.count() == len(reference.accelerators())
    assert ModelArchitecture.objects.count() == len(reference.architectures())
    assert ServerPlatform.objects.count() == 13
    assert TcoDefault.objects.count() == len(reference.document("tco_defaults")["tco_defaults"])
    assert ExchangeRate.objects.filter(base="USD", quote="CNY").exists()
    assert not Accelerator.objects.filter(current=None).exists()


def test_a_second_run_changes_nothing_and_says_so(loaded, capsys):
    again = load_reference()

    assert again.changed == 0
    assert again.unchanged["accelerator"] == loaded.added["accelerator"]
    assert again.unchanged["offer price"] == loaded.added["offer price"]
    call_command("load_catalog")
    assert "0 rows changed" in capsys.readouterr().out


def test_names_what_it_leaves_out(loaded):
    said = " / ".join(str(message) for message in loaded.dropped)
    for name in ("Quadro RTX 6000", "m60", "p4", "gaudi1", "8GB-class"):
        assert name in said
    assert "a sixth of a card" in said
    assert "18000-25000/month" in said
    assert not CloudOffer.objects.filter(accelerator_name="Quadro RTX 6000").exists()


@pytest.mark.parametrize(
    ("cloud", "instance", "name", "slug"),
    [
        ("aws", "p4d.24xlarge", "A100", "nvidia-a100-sxm4-40gb"),
        ("azure", "NC24ads_A100_v4", "A100", "nvidia-a100-pcie-80gb"),
        ("gcp", "a2-ultragpu-1g", "A100", "nvidia-a100-sxm4-80gb"),
        ("azure", "NC40ads_H100_v5", "H100", "nvidia-h100-nvl-94gb"),
        ("aws", "p5.48xlarge", "H100", "nvidia-h100-sxm5-80gb"),
        ("runpod", "1x_A100-80GB_SECURE", "A100-80GB", "nvidia-a100-pcie-80gb"),
        ("aws", "g3.8xlarge", "m60", None),
    ],
)
def test_instance_type_decides_which_card_a_bare_name_is(cloud, instance, name, slug):
    row = {"cloud": cloud, "instance_type": instance, "accelerator_name": name}
    assert offer_slug(row)[0] == slug


def test_one_instance_of_two_sources_is_one_offer(loaded):
    offers = CloudOffer.objects.filter(
        cloud="azure", instance_type="ND96isr_H100_v5", region="eastus"
    )
    assert offers.count() == 1
    dates = offers.get().prices.filter(kind="on_demand").values_list("as_of", flat=True)
    assert set(dates) == {date(2026, 6, 18), date(2026, 9, 6)}


@pytest.mark.parametrize(
    ("on_demand", "spot", "usable"),
    [
        ("2.78", "2.78", None),
        ("2.00", "3.10", None),
        ("2.00", "0.80", "0.80"),
        (None, "0.80", "0.80"),
    ],
)
def test_spot_not_below_on_demand_is_missing(on_demand, spot, usable):
    result = usable_spot(on_demand and Decimal(on_demand), Decimal(spot))
    assert result == (usable and Decimal(usable))


def test_no_stored_spot_price_reaches_on_demand(loaded):
    for spot in OfferPrice.objects.filter(kind="spot"):
        same = OfferPrice.objects.filter(
            offer=spot.offer_id, kind="on_demand", as_of=spot.as_of, source=spot.source
        ).first()
        assert same is None or spot.amount < same.amount


def test_prices_are_dated_rows_never_overwritten(loaded):
    offer = CloudOffer.objects.get(cloud="aws", region="us-east-1", instance_type="p5.48xlarge")
    before = offer.prices.filter(kind="on_demand").count()
    OfferPrice.objects.create(
        offer=offer, kind="on_demand", amount=Decimal("40"), currency="USD", source="price page",
        as_of=date(2026, 12, 1), confidence="read",
    )  # fmt: skip

    assert offer.prices.filter(kind="on_demand").count() == before + 1
    latest = selectors.latest_prices(kinds=["on_demand"]).get(offer=offer)
    assert latest.amount == Decimal("40")
    earlier = selectors.latest_prices(kinds=["on_demand"], on=date(2026, 11, 30)).get(offer=offer)
    assert earlier.amount != Decimal("40")
    with pytest.raises(AppendOnlyError):
        offer.prices.update(amount=1)
    latest.amount = Decimal("1")
    with pytest.raises(AppendOnlyError):
        latest.save()


def test_the_database_refuses_to_change_a_price(loaded):
    from django.db import DatabaseError, connection

    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE catalog_offerprice SET amount = 1")


def test_one_price_a_day_and_source(loaded):
    price = OfferPrice.objects.first()
    with pytest.raises(IntegrityError), transaction.atomic():
        OfferPrice.objects.create(
            offer=price.offer, kind=price.kind, amount=Decimal("9"), currency="USD",
            source=price.source, as_of=price.as_of, confidence="read",
        )  # fmt: skip


def test_a_correction_stays_current_when_shipped_facts_change(loaded, monkeypatch):
    card = selectors.accelerators_by_slug(["nvidia-l4"])["nvidia-l4"]
    figures = card.current.figures | {"tdp": 75.0}
    add_revision(
        ACCELERATOR, card, origin=Origin.CORRECTION, **figures, reason="Measured at the plug",
        source="Meter", as_of=date(2026, 12, 1), confidence="measured",
    )  # fmt: skip
    rows = dict(reference.accelerators())
    rows["nvidia-l4"] = {**rows["nvidia-l4"], "tdp": 71.0}
    monkeypatch.setattr(reference, "accelerators", lambda: rows)

    report = load_reference()

    assert report.revised["accelerator"] == 1
    card = selectors.accelerators_by_slug(["nvidia-l4"])["nvidia-l4"]
    assert card.current.tdp == 75.0
    assert card.reference.tdp == 71.0
    assert AcceleratorSpec.objects.filter(accelerator=card).count() == 3
    assert load_reference().changed == 0


def test_an_edited_exchange_rate_is_left_alone(loaded):
    ExchangeRate.objects.filter(base="USD", quote="CNY").update(rate=Decimal("7.10"))

    report = load_reference()

    assert report.changed == 0
    assert any("7.10" in str(message) for message in report.cautions)


def test_street_prices_and_platform_prices_are_kept_with_their_year(loaded):
    h100 = PriceRecord.objects.get(accelerator__slug="nvidia-h100-sxm5-80gb")
    assert (h100.low, h100.high, h100.currency) == (Decimal(200000), Decimal(250000), "CNY")
    assert h100.dated == "2025"
    assert PriceRecord.objects.filter(platform__isnull=False).count() == 13


def test_prices_cost_one_query_whatever_their_number(loaded, django_assert_num_queries):
    with django_assert_num_queries(1):
        rows = list(selectors.latest_prices())
        names = {row.offer.accelerator.slug for row in rows}
    assert len(rows) > 400
    assert "nvidia-h100-sxm5-80gb" in names
    with django_assert_num_queries(1):
        assert len(selectors.accelerator_rows()) == len(reference.accelerators())


def test_rows_of_the_database_equal_the_files(loaded):
    from planning import reference as bridge

    assert bridge.accelerators_from_database() == bridge.accelerators()
    assert bridge.architectures_from_database() == bridge.architectures()
