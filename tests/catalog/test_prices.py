"""Price files: every row has a fate before anything is written; nothing held is overwritten."""

from datetime import date
from decimal import Decimal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from catalog.models import CloudOffer, OfferPrice, PriceImport, PriceRecord
from catalog.services import prices
from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import AuditEntry
from core.roles import Role

HEADER = (
    "cloud,region,instance_type,accelerator,accelerator_count,kind,term_months,"
    "price_per_instance_hour,currency,as_of,source\n"
)
NEW = "aws,us-east-1,p5.48xlarge,H100,8,on_demand,,49.75,USD,2026-11-29,price page\n"
HELD = (
    "aws,us-east-1,p5.48xlarge,H100,8,on_demand,,55.04,USD,2026-07-20,"
    "aws/karpenter-provider-aws@1d92708 zz_generated.pricing_aws.go\n"
)
CLASH = HELD.replace("55.04", "50")


@pytest.fixture(autouse=True)
def _on_the_last_of_november(time_machine):
    time_machine.move_to("2026-11-30T04:00:00Z", tick=False)


def file(text, encoding="utf-8", name="prices.csv"):
    return SimpleUploadedFile(name, text.encode(encoding))


def started(text, by, target="offers", **kwargs):
    return prices.start_import(target=target, upload=file(text, **kwargs), by=by)


def fates(text, by, target="offers"):
    return [(f.line, f.fate) for f in prices.preview(started(text, by, target)).fates]


def test_preview_says_what_becomes_of_each_row_and_writes_nothing(loaded, buyer):
    before = OfferPrice.objects.count()
    text = HEADER + NEW + HELD + CLASH + NEW + NEW.replace("49.75", "48")
    assert fates(text, buyer) == [
        (2, "add"), (3, "unchanged"), (4, "refused"), (5, "unchanged"), (6, "refused"),
    ]  # fmt: skip
    assert OfferPrice.objects.count() == before


def test_applying_adds_the_new_and_leaves_what_is_held(loaded, buyer):
    row = started(HEADER + NEW + HELD + CLASH, buyer)
    applied = prices.apply_import(pk=row.pk, by=buyer, seen=1)

    assert applied.counts == {"add": 1, "unchanged": 1, "refused": 1}
    offer = CloudOffer.objects.get(cloud="aws", region="us-east-1", instance_type="p5.48xlarge")
    assert offer.prices.get(as_of=date(2026, 11, 29)).amount == Decimal("49.75")
    assert offer.prices.get(as_of=date(2026, 7, 20)).amount == Decimal("55.04")
    assert AuditEntry.objects.get(action="price_import.applied").data["rows"]["add"] == 1
    with pytest.raises(InvalidTransition):
        prices.apply_import(pk=row.pk, by=buyer)


def test_a_new_offer_comes_with_its_prices_once(loaded, buyer):
    line = "newcloud,cn-north,h100.8,NVIDIA H100 80GB HBM3,8,{},{},{},CNY,2026-11-01,quote 7\n"
    line = line.replace("NVIDIA H100 80GB HBM3", "H100-80GB")
    text = HEADER + line.format("on_demand", "", "400.5") + line.format("Reserved", "12", "260")
    row = started(text, buyer)
    prices.apply_import(pk=row.pk, by=buyer)

    offer = CloudOffer.objects.get(cloud="newcloud")
    assert offer.accelerator.slug == "nvidia-h100-sxm5-80gb"
    assert sorted(offer.prices.values_list("kind", "term_months")) == [
        ("on_demand", 0), ("reserved", 12),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        (HEADER + NEW).replace(",", ";"),
        (HEADER + NEW).replace(",", ";").replace("49.75", "49,75"),
        (HEADER + NEW).replace("\n", "\r\n"),
        "\ufeff" + HEADER + NEW,
        HEADER + NEW.replace("price page", '"price\npage"'),
    ],
    ids=["semicolon", "decimal-comma", "crlf", "bom", "line-break"],
)
def test_the_same_price_in_every_guise(loaded, buyer, text):
    (fate,) = prices.preview(started(text, buyer)).fates
    assert (fate.fate, fate.price.amount) == ("add", Decimal("49.75"))


@pytest.mark.parametrize(
    ("encoding", "source"), [("cp1252", "Büro München"), ("gb18030", "报价单")]
)
def test_an_unclear_encoding_is_asked_for_then_kept(loaded, buyer, encoding, source):
    row = started(HEADER + NEW.replace("price page", source), buyer, encoding=encoding)
    asked = prices.preview(row)
    assert asked.fates == []
    assert source in asked.choices[encoding]
    with pytest.raises(InputError, match="encoding"):
        prices.apply_import(pk=row.pk, by=buyer)

    prices.choose_encoding(pk=row.pk, encoding=encoding, by=buyer)
    prices.apply_import(pk=row.pk, by=buyer)
    assert OfferPrice.objects.get(source=source).amount == Decimal("49.75")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("49.75", "-1", "above 0"),
        ("49.75", "1,2,3", "cells"),
        ("49.75", "", "is missing"),
        ("H100", "H9000", "not an accelerator"),
        (",8,", ",4,", "8 accelerators"),
        (",8,", ",8.5,", "whole number"),
        ("on_demand", "sometimes", "use one of"),
        ("on_demand,", "reserved,", "term_months"),
        ("USD", "XXX", "use one of"),
        ("2026-11-29", "2026-12-02", "to come"),
        ("2026-11-29", "29/11/2026", "year-month-day"),
    ],
)
def test_a_bad_row_is_refused_with_its_reason_and_stops_no_other(loaded, buyer, old, new, says):
    text = HEADER + NEW.replace(old, new, 1) + NEW
    first, second = prices.preview(started(text, buyer)).fates
    assert first.fate == "refused"
    assert says in str(first.message)
    assert second.fate == "add"


def test_a_day_is_judged_in_the_zone_of_the_organisation(loaded, buyer, time_machine):
    time_machine.move_to("2026-11-30T17:00:00Z", tick=False)  # December in Shanghai
    assert fates(HEADER + NEW.replace("2026-11-29", "2026-12-01"), buyer) == [(2, "add")]


def test_hardware_prices_of_cards_and_platforms(loaded, buyer):
    text = (
        "item;unit_price_low;unit_price_high;currency;condition;tax_included;as_of;source\n"
        "RTX 4090;14500;15500;CNY;used;yes;2026-11-01;market\n"
        "DGX H200 / HGX H200 8-GPU;300000;;USD;new;no;2026-11-01;quote\n"
        "RTX 4090;15000;14000;CNY;used;yes;2026-11-02;market\n"
        "Toaster;10;;CNY;;;2026-11-01;market\n"
    )
    row = started(text, buyer, "hardware")
    assert [fate.fate for fate in prices.preview(row).fates] == ["add", "add", "refused", "refused"]
    prices.apply_import(pk=row.pk, by=buyer)
    card = PriceRecord.objects.get(source="market")
    assert (card.low, card.high, card.tax_included) == (Decimal(14500), Decimal(15500), True)
    server = PriceRecord.objects.get(source="quote")
    assert server.low == server.high == Decimal(300000)


def test_a_faster_import_of_the_same_price_is_not_doubled(loaded, buyer):
    first, second = started(HEADER + NEW, buyer), started(HEADER + NEW, buyer)
    prices.apply_import(pk=first.pk, by=buyer)
    applied = prices.apply_import(pk=second.pk, by=buyer)
    assert applied.counts == {"add": 0, "unchanged": 1, "refused": 0}
    assert OfferPrice.objects.filter(source="price page").count() == 1


def test_an_old_page_cannot_apply(loaded, buyer):
    row = started(HEADER + NEW, buyer)
    with pytest.raises(StaleData):
        prices.apply_import(pk=row.pk, by=buyer, seen=7)
    prices.discard_import(pk=row.pk, by=buyer)
    with pytest.raises(InvalidTransition):
        prices.apply_import(pk=row.pk, by=buyer)


@pytest.mark.parametrize("role", [Role.REQUESTER, Role.APPROVER, Role.AUDITOR])
def test_who_may_not_bring_prices(loaded, make_user, role):
    with pytest.raises(NotPermitted):
        started(HEADER + NEW, make_user(role))
    assert not PriceImport.objects.exists()


def test_finance_may_bring_prices(loaded, finance):
    assert started(HEADER + NEW, finance).pk


def test_other_files_are_refused(loaded, buyer):
    for upload in (SimpleUploadedFile("a.csv", b"%PDF-1.7"), SimpleUploadedFile("a.csv", b"")):
        with pytest.raises(InputError):
            prices.start_import(target="offers", upload=upload, by=buyer)
    with pytest.raises(InputError, match="region is missing"):
        started("cloud\naws\n", buyer)


def test_preview_costs_the_same_for_two_rows_and_for_many(loaded, buyer, django_assert_num_queries):
    def text(rows):
        return HEADER + "".join(
            NEW.replace("49.75", f"4{n}.5").replace("price page", f"s{n}") for n in range(rows)
        )

    few, many = started(text(2), buyer), started(text(200), buyer)
    with django_assert_num_queries(4):
        prices.preview(few)
    with django_assert_num_queries(4):
        assert len(prices.preview(many).fates) == 200
