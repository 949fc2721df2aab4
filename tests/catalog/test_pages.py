"""The catalogue's pages: what they show, to whom, and at what cost."""

import csv
import io
from decimal import Decimal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from openpyxl import load_workbook

from catalog.models import Accelerator, CloudOffer, OfferPrice, PriceImport, TcoDefault
from core.models import AuditEntry, ExchangeRate
from core.roles import Role
from tests.catalog.test_prices import CLASH, HEADER, NEW

LISTS = [
    "accelerator-list", "model-list", "offer-list", "hardware-price-list", "platform-list", "tco-list", "rate-list",
]  # fmt: skip
TOLD = {
    "reason": "Vendor letter", "source": "Letter 114", "as_of": "2026-11-30", "confidence": "read", "seen": "1",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _on_the_last_of_november(time_machine):
    time_machine.move_to("2026-11-30T04:00:00Z", tick=False)


@pytest.fixture
def read(client, reader):
    """GET as someone without any right to change."""

    def get(name, *args, **query):
        client.force_login(reader)
        return client.get(reverse(name, args=args), query)

    return get


def text(response):
    return response.content.decode()


@pytest.mark.parametrize("name", LISTS)
def test_every_list_shows_its_rows_to_everyone_signed_in(loaded, read, client, name):
    page = read(name)
    assert page.status_code == 200
    assert "<tbody><tr>" in text(page)
    client.logout()
    assert client.get(reverse(name)).status_code == 302


@pytest.mark.parametrize("name", LISTS)
def test_lists_speak_chinese(loaded, client, reader, name):
    reader.language = "zh-hans"
    reader.save()
    client.force_login(reader)
    page = text(client.get(reverse(name)))
    assert 'lang="zh-hans"' in page
    assert "目录" in page
    for english in ("Accelerators</a>", ">Filter<", "Confidence"):
        assert english not in page


@pytest.mark.parametrize("name", LISTS)
def test_a_list_costs_the_same_for_few_rows_and_for_a_page(
    loaded, client, reader, name, monkeypatch, django_assert_max_num_queries
):
    client.force_login(reader)
    client.get(reverse(name))
    counts = []
    for size in (2, 100):
        monkeypatch.setattr("catalog.views.lists.PAGE_SIZE", size)
        with django_assert_max_num_queries(12) as captured:
            page = client.get(reverse(name))
        assert len(page.context["rows"]) > 1
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_a_detail_page_costs_the_same_with_and_without_prices(
    loaded, client, reader, django_assert_max_num_queries
):
    client.force_login(reader)
    for slug in ("nvidia-h100-sxm5-80gb", "cambricon-mlu590"):
        with django_assert_max_num_queries(14):
            client.get(reverse("accelerator-detail", args=[slug]))


def test_dense_rate_stands_first_and_the_marketing_figure_beside(loaded, read):
    page = text(read("accelerator-list", q="A100 SXM4 80GB"))
    assert "312" in page
    assert "(624)" in page
    detail = text(read("accelerator-detail", "nvidia-a100-sxm4-80gb"))
    assert "312 TFLOPS" in detail
    assert "624 TFLOPS" in detail
    assert "312 TFLOPS is the dense rate" in detail


def test_a_trap_of_one_card_is_not_told_of_its_sibling(loaded, read):
    assert "An L40 is not an L40S" in text(read("accelerator-detail", "nvidia-l40"))
    assert "An L40 is not an L40S" not in text(read("accelerator-detail", "nvidia-l40s"))
    assert "181 belongs to the L40" in text(read("accelerator-detail", "nvidia-l40s"))


def test_every_accelerator_and_model_has_a_page(loaded, read):
    for slug in Accelerator.objects.values_list("slug", flat=True):
        assert read("accelerator-detail", slug).status_code == 200, slug
    for slug in ("deepseek-v3", "resnet-50", "gemma-3-27b", "bert-base", "flux-1-dev"):
        assert read("model-detail", slug).status_code == 200, slug
    assert read("platform-detail", "dgx-h100-hgx-h100-8-gpu").status_code == 200
    assert read("tco-detail", TcoDefault.objects.get(key="residual.h100").pk).status_code == 200
    assert read("accelerator-detail", "no-such-card").status_code == 404


def test_a_model_shows_its_cache_and_its_computed_parameters(loaded, read):
    page = text(read("model-detail", "llama-3-1-8b"))
    assert "128 KiB" in page  # 2 x 32 layers x 8 heads x 128 x 2 B
    assert "64 KiB" in page
    assert page.count("8,030,261,248") >= 2  # published and, here, computed exactly so


def test_sort_links_turn_and_unknown_orders_are_ignored(loaded, read):
    page = read("accelerator-list", sort="-bandwidth")
    assert 'aria-sort="descending"' in text(page)
    assert "sort=bandwidth" in text(page)
    assert read("accelerator-list", sort="nonsense").status_code == 200


def test_an_empty_result_offers_the_way_back(loaded, read):
    assert "Nothing matches the filter." in text(read("offer-list", q="no such thing"))


def test_comparison_takes_two_to_four(loaded, read):
    cards = ["nvidia-h100-sxm5-80gb", "nvidia-h800-sxm5-80gb", "nvidia-l40s"]
    page = read("accelerator-compare", card=cards)
    assert page.status_code == 200
    assert "989.4 TFLOPS" in text(page)
    assert "The link was cut, not the memory" in text(page)
    for chosen in ([], cards[:1], [*cards, "nvidia-l4", "nvidia-t4"]):
        refused = read("accelerator-compare", card=chosen)
        assert refused.status_code == 422
        assert "Choose 2 to 4" in text(refused)


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_every_list_exports_all_its_rows(loaded, read, name, kind):
    response = read(name, export=kind)
    content = b"".join(response.streaming_content)
    if kind == "csv":
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    else:
        sheet = load_workbook(io.BytesIO(content), read_only=True).active
        rows = [[cell for cell in row] for row in sheet.iter_rows(values_only=True)]
    assert "source" in rows[0]
    assert len(rows) > 10
    assert all(len(row) == len(rows[0]) for row in rows)


def test_an_export_keeps_the_filter_and_disarms_formulas(loaded, read):
    card = Accelerator.objects.get(slug="nvidia-l4")
    offer = CloudOffer.objects.create(
        cloud="=cmd|' /C calc'!A0", region="+1", instance_type="@x", accelerator=card, accelerator_name="L4",
        accelerator_count=1,
    )  # fmt: skip
    OfferPrice.objects.create(
        offer=offer, kind="on_demand", amount=Decimal("1"), currency="USD", as_of="2026-11-01",
        source="＝HYPERLINK()", confidence="read",
    )  # fmt: skip
    content = b"".join(read("offer-list", q="@x", export="csv").streaming_content).decode(
        "utf-8-sig"
    )
    (row,) = csv.DictReader(io.StringIO(content, newline=""))
    assert row["cloud"].startswith("'=cmd")
    assert row["region"] == "'+1"
    assert row["instance_type"] == "'@x"
    assert row["source"] == "'＝HYPERLINK()"
    assert row["price_per_instance_hour"] == "1"


def test_an_export_of_offers_can_be_imported_again(loaded, read, buyer):
    from catalog.services import prices

    content = b"".join(
        read("offer-list", cloud="azure", kind="spot", export="csv").streaming_content
    )
    upload = SimpleUploadedFile("back.csv", content)
    row = prices.start_import(target="offers", upload=upload, by=buyer)
    counts = prices.preview(row).counts
    assert counts["refused"] == counts["add"] == 0
    assert counts["unchanged"] > 3


# --- changes --------------------------------------------------------------------------------------------------------


def test_a_correction_by_page_shows_both_figures(loaded, client, buyer):
    client.force_login(buyer)
    address = reverse("accelerator-correct", args=["nvidia-l4"])
    form = client.get(address).context["form"]
    body = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    answer = client.post(address, body | TOLD | {"tdp_w": "75"}, follow=True)

    page = text(answer)
    assert "<del>72 W</del>" in page
    assert "<ins>75 W</ins>" in page
    assert "Vendor letter" in page
    entry = AuditEntry.objects.get(action="accelerator.corrected")
    assert entry.data["changes"] == {"tdp": [72, 75.0]}


def test_a_wrong_correction_says_why_beside_the_field(loaded, client, buyer):
    client.force_login(buyer)
    address = reverse("tco-correct", args=[TcoDefault.objects.get(key="pue.colocation").pk])
    answer = client.post(address, TOLD | {"low": "1.2", "value": "2.9", "high": "1.5"})
    assert answer.status_code == 422
    assert "between low and high" in text(answer)
    answer = client.post(address, TOLD | {"low": "1.25", "value": "1.45", "high": "1.58"})
    assert "No figure differs" in text(answer)


def test_a_series_of_a_cost_default_is_corrected_as_one(loaded, client, buyer):
    client.force_login(buyer)
    default = TcoDefault.objects.get(key="residual.h100")
    body = TOLD | {
        "low": "0.5 / 0.35 / 0.2 / 0.1 / 0.05", "value": "0.55/0.4/0.25/0.15/0.1", "high": "0.65/0.45/0.35/0.2/0.15",
    }  # fmt: skip
    client.post(reverse("tco-correct", args=[default.pk]), body)
    default.refresh_from_db()
    assert default.current.value == [0.55, 0.4, 0.25, 0.15, 0.1]


CHANGING = [
    ("accelerator-correct", ["nvidia-l4"], {Role.PROCUREMENT, Role.OPERATIONS, Role.ADMINISTRATOR}),
    ("model-correct", ["llama-3-1-8b"], {Role.PROCUREMENT, Role.OPERATIONS, Role.ADMINISTRATOR}),
    ("platform-correct", ["dgx-h100-hgx-h100-8-gpu"], {Role.PROCUREMENT, Role.OPERATIONS, Role.ADMINISTRATOR}),
    ("rate-add", [], {Role.FINANCE, Role.ADMINISTRATOR}),
    ("price-import", [], {Role.PROCUREMENT, Role.OPERATIONS, Role.FINANCE, Role.ADMINISTRATOR}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "allowed"), CHANGING)
@pytest.mark.parametrize("role", list(Role))
def test_pages_that_change_open_to_the_roles_that_may(
    loaded, client, make_user, name, args, allowed, role
):
    client.force_login(make_user(role))
    assert client.get(reverse(name, args=args)).status_code == (200 if role in allowed else 403)


@pytest.mark.parametrize("role", [Role.REQUESTER, Role.PROCUREMENT, Role.FINANCE])
def test_buttons_show_to_those_who_may(loaded, client, make_user, role):
    client.force_login(make_user(role))
    correct = reverse("accelerator-correct", args=["nvidia-l4"])
    shown = correct in text(client.get(reverse("accelerator-detail", args=["nvidia-l4"])))
    assert shown == (role == Role.PROCUREMENT)
    assert (reverse("rate-add") in text(client.get(reverse("rate-list")))) == (role == Role.FINANCE)


def test_finance_adds_a_rate_by_page(loaded, client, finance):
    client.force_login(finance)
    body = {"base": "USD", "quote": "CNY", "rate": "7.1", "as_of": "2026-11-30", "source": "PBoC"}
    assert client.post(reverse("rate-add"), body).status_code == 302
    again = client.post(reverse("rate-add"), body)
    assert again.status_code == 422
    assert "never overwritten" in text(again)
    assert ExchangeRate.objects.filter(as_of="2026-11-30").count() == 1


def upload(client, content, target="offers"):
    file = SimpleUploadedFile("prices.csv", content)
    return client.post(reverse("price-import"), {"target": target, "file": file}, follow=True)


def test_a_price_file_by_page(loaded, client, buyer):
    client.force_login(buyer)
    shown = text(upload(client, (HEADER + NEW + CLASH).encode()))
    assert "will be added" in shown
    assert "never overwritten" in shown
    row = PriceImport.objects.get()
    applied = client.post(
        reverse("price-import-apply", args=[row.pk]), {"version": "1"}, follow=True
    )
    assert "1 price was added." in text(applied)
    again = client.post(reverse("price-import-apply", args=[row.pk]), {"version": "1"})
    assert again.status_code == 409
    assert OfferPrice.objects.filter(source="price page").count() == 1


def test_the_page_asks_for_the_encoding_with_a_sample(loaded, client, buyer):
    client.force_login(buyer)
    asked = text(upload(client, (HEADER + NEW.replace("price page", "北京报价")).encode("gb18030")))
    assert "北京报价" in asked
    row = PriceImport.objects.get()
    chosen = client.post(
        reverse("price-import-encoding", args=[row.pk]), {"encoding": "gb18030"}, follow=True
    )
    assert "will be added" in text(chosen)


def test_a_file_put_aside_adds_nothing(loaded, client, buyer):
    client.force_login(buyer)
    upload(client, (HEADER + NEW).encode())
    row = PriceImport.objects.get()
    client.post(reverse("price-import-discard", args=[row.pk]))
    assert not OfferPrice.objects.filter(source="price page").exists()


def test_the_empty_file_names_the_columns(loaded, client, buyer):
    client.force_login(buyer)
    response = client.get(reverse("price-template", args=["offers"]))
    head = b"".join(response.streaming_content).decode("utf-8-sig")
    assert head.startswith("cloud,region,instance_type,accelerator")
    assert client.get(reverse("price-template", args=["tea"])).status_code == 404


def test_support_pages_only_show(loaded, client, make_user):
    client.force_login(make_user(is_staff=True, is_superuser=True))
    page = client.get(reverse("admin:catalog_accelerator_changelist"))
    assert page.status_code == 200
    assert client.get(reverse("admin:catalog_accelerator_add")).status_code == 403
