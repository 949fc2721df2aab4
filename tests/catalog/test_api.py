"""The API says the same as the pages, under the same rules."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from catalog.models import Accelerator, OfferPrice
from core.roles import Role

CARD = "/api/v1/catalog/accelerators/nvidia-l4/"
PRICE = {
    "cloud": "aws", "region": "us-east-1", "instance_type": "p5.48xlarge", "accelerator": "H100",
    "accelerator_count": 8, "kind": "on_demand", "price_per_instance_hour": "49.75", "currency": "USD",
    "as_of": "2026-11-29", "source": "price page",
}  # fmt: skip
RATE = {"base": "USD", "quote": "CNY", "rate": "7.1", "as_of": "2026-11-30", "source": "PBoC"}
TOLD = {"reason": "Measured", "source": "Meter", "as_of": "2026-11-30", "confidence": "measured"}
ADDRESSES = [
    "accelerators/", "accelerators/nvidia-l4/", "models/", "models/deepseek-v3/", "platforms/", "tco-defaults/",
    "offer-prices/", "offer-prices/?history=1", "hardware-prices/", "exchange-rates/",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _on_the_last_of_november(time_machine):
    time_machine.move_to("2026-11-30T04:00:00Z", tick=False)


def client(user):
    api = APIClient()
    api.force_authenticate(user)
    return api


@pytest.mark.parametrize("address", ["accelerators", "hardware-prices"])
def test_a_search_of_a_thousand_words_is_refused_by_name(loaded, reader, address):
    answer = client(reader).get(f"/api/v1/catalog/{address}/", {"q": "a " * 1300})
    assert answer.status_code == 400
    assert list(answer.json()) == ["q"]
    assert "100" in str(answer.json())


@pytest.mark.parametrize("address", ["accelerators", "hardware-prices"])
def test_a_page_with_a_search_too_long_says_so(loaded, reader, address):
    browser = Client()
    browser.force_login(reader)
    page = browser.get(f"/catalog/{address}/", {"q": "a " * 1300})
    assert page.status_code == 200
    assert "at most 100 characters" in page.content.decode()


@pytest.mark.parametrize("address", ADDRESSES)
def test_everyone_signed_in_may_read_and_nobody_else(loaded, reader, address):
    assert client(reader).get(f"/api/v1/catalog/{address}").status_code == 200
    assert APIClient().get(f"/api/v1/catalog/{address}").status_code in (401, 403)


@pytest.mark.parametrize(
    "address",
    [
        "accelerators/",
        "models/",
        "platforms/",
        "tco-defaults/",
        "offer-prices/",
        "hardware-prices/",
    ],
)
def test_a_list_costs_the_same_for_few_rows_and_many(
    loaded, reader, address, django_assert_max_num_queries
):
    api = client(reader)
    for size in (2, 100):
        with django_assert_max_num_queries(4):
            body = api.get(f"/api/v1/catalog/{address}", {"page_size": size}).json()
        assert len(body["results"]) > 1


def test_figures_come_in_si_units_with_their_source(loaded, reader):
    body = client(reader).get("/api/v1/catalog/accelerators/nvidia-h100-sxm5-80gb/").json()
    assert body["current"]["hbm_bandwidth"] == 3.35e12
    assert body["current"]["peak_flops"]["bf16"] == 989.4e12
    assert body["current"]["marketing_flops"]["bf16"] == pytest.approx(1978.9e12)
    assert body["current"]["source"]
    assert body["current"]["confidence"] == "read"
    assert len(body["revisions"]) == 1


def test_filters_search_and_order(loaded, reader):
    api = client(reader)
    cards = api.get("/api/v1/catalog/accelerators/", {"q": "h100 sxm", "sort": "-bandwidth"}).json()
    assert cards["results"][0]["slug"] == "nvidia-h100-sxm5-80gb"
    large = api.get("/api/v1/catalog/accelerators/", {"memory_gb": 180, "page_size": 500}).json()
    assert {row["slug"] for row in large["results"]} >= {
        "amd-instinct-mi300x-oam",
        "nvidia-b200-sxm6-hgx",
    }
    assert all(row["current"]["hbm_bytes"] >= 180e9 for row in large["results"])
    spot = api.get(
        "/api/v1/catalog/offer-prices/",
        {"accelerator": "nvidia-l40s", "kind": "spot", "sort": "price"},
    ).json()
    prices = [float(row["price_per_accelerator_hour"]) for row in spot["results"]]
    assert prices == sorted(prices)
    assert len(prices) > 10


def test_rows_without_the_figure_come_last_in_either_direction(loaded, reader):
    api = client(reader)
    for sort in ("bandwidth", "-bandwidth"):
        rows = api.get("/api/v1/catalog/accelerators/", {"sort": sort, "page_size": 500}).json()[
            "results"
        ]
        assert rows[-1]["current"]["hbm_bandwidth"] is None


def test_money_is_a_decimal_string(loaded, reader):
    row = client(reader).get("/api/v1/catalog/offer-prices/").json()["results"][0]
    assert isinstance(row["price_per_instance_hour"], str)


def test_a_correction_through_the_api_obeys_the_same_policy(loaded, buyer, finance):
    body = {"changes": {"tdp": 75.0}, "seen": 1, **TOLD}
    refused = client(finance).post(f"{CARD}corrections/", body, format="json")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_permitted")

    made = client(buyer).post(f"{CARD}corrections/", body, format="json")
    assert made.status_code == 201
    assert made.json()["number"] == 2
    stale = client(buyer).post(f"{CARD}corrections/", body, format="json")
    assert (stale.status_code, stale.json()["code"]) == (409, "stale")
    assert Accelerator.objects.get(slug="nvidia-l4").current.tdp == 75.0


def test_a_wrong_figure_is_named(loaded, buyer):
    body = {"changes": {"tdp": -1}, **TOLD}
    answer = client(buyer).post(f"{CARD}corrections/", body, format="json")
    assert answer.status_code == 422
    assert answer.json()["field"] == "tdp"


def test_a_price_is_added_once(loaded, buyer, reader):
    address = "/api/v1/catalog/offer-prices/"
    assert client(reader).post(address, PRICE, format="json").status_code == 403
    first = client(buyer).post(address, PRICE, format="json")
    again = client(buyer).post(address, PRICE, format="json")
    clash = client(buyer).post(address, PRICE | {"price_per_instance_hour": "1"}, format="json")
    assert (first.status_code, again.status_code, clash.status_code) == (201, 200, 422)
    assert first.json()["price_per_accelerator_hour"] == "6.218750"
    assert OfferPrice.objects.filter(source="price page").count() == 1


def test_a_hardware_price_is_added(loaded, buyer):
    body = {
        "item": "RTX 4090", "unit_price_low": "14500.00", "currency": "CNY", "as_of": "2026-11-01", "source": "market",
    }  # fmt: skip
    made = client(buyer).post("/api/v1/catalog/hardware-prices/", body, format="json")
    assert made.status_code == 201
    assert made.json()["unit_price_high"] == "14500.00"


@pytest.mark.parametrize(("role", "status"), [(Role.FINANCE, 201), (Role.PROCUREMENT, 403)])
def test_finance_adds_a_rate(loaded, make_user, role, status):
    answer = client(make_user(role)).post("/api/v1/catalog/exchange-rates/", RATE, format="json")
    assert answer.status_code == status


def test_a_repeated_key_gives_the_first_answer(loaded, finance):
    api = client(finance)
    answers = [
        api.post(
            "/api/v1/catalog/exchange-rates/",
            RATE,
            format="json",
            headers={"Idempotency-Key": "k1"},
        )
        for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()


def test_a_price_file_is_shown_then_applied(loaded, buyer, reader):
    api = client(buyer)
    text = ",".join(PRICE) + "\n" + ",".join(str(value) for value in PRICE.values()) + "\nbad,row\n"
    upload = SimpleUploadedFile("prices.csv", text.encode())
    shown = api.post("/api/v1/catalog/price-imports/", {"target": "offers", "file": upload})
    assert shown.status_code == 201
    assert shown.json()["counts"] == {"add": 1, "unchanged": 0, "refused": 1}
    assert [row["fate"] for row in shown.json()["rows"]] == ["add", "refused"]

    address = f"/api/v1/catalog/price-imports/{shown.json()['id']}/"
    assert client(reader).get(address).status_code == 403
    applied = api.post(f"{address}apply/", {"version": 1}, format="json")
    assert (applied.status_code, applied.json()["status"]) == (200, "applied")
    assert api.post(f"{address}apply/", {}, format="json").status_code == 409


def test_an_unclear_encoding_is_asked_for(loaded, buyer):
    api = client(buyer)
    text = (
        ",".join(PRICE) + "\n" + ",".join(str(v) for v in (PRICE | {"source": "München"}).values())
    )
    upload = SimpleUploadedFile("prices.csv", text.encode("cp1252"))
    asked = api.post("/api/v1/catalog/price-imports/", {"target": "offers", "file": upload}).json()
    assert "München" in asked["encodings"]["cp1252"]
    address = f"/api/v1/catalog/price-imports/{asked['id']}/encoding/"
    chosen = api.post(address, {"encoding": "cp1252"}, format="json").json()
    assert chosen["counts"]["add"] == 1
