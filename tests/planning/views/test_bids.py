"""The bid ladder by page and API: a history in, rungs out; what is wrong stands at its field."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from planning.api.bids import BidInput
from planning.economics import bids, defaults
from planning.forms.bids import BidForm
from planning.services import bid_ladder
from tests.planning import builders
from tests.planning.economics.test_bids import JOB, MONDAY, cny, night_history, night_prices

WORK = {
    "on_demand": "150", "currency": "CNY", "work_hours": "60", "interval_minutes": "120", "checkpoint_minutes": "3",
    "restart_minutes": "15", "notice_seconds": "0",
}  # fmt: skip


def file(text, name="history.csv"):
    return SimpleUploadedFile(name, text.encode(), "text/csv")


@pytest.fixture
def w(db):
    return builders.world()


def test_the_page_shows_every_rung_of_the_engine_and_when_it_is_cheap(w, client):
    client.force_login(w.requester)
    address = reverse("bids")
    assert 'name="work_hours"' in client.get(address + "?work_hours=12").content.decode()
    answer = client.post(address, {**WORK, "file": file("\ufeff" + night_prices())})

    assert answer.status_code == 200
    rows = answer.context["rows"]
    engine = bids.ladder(night_history(), JOB, cny("150"))
    assert [row["stops"] for row in rows] == [one.interruptions for one in engine]
    assert [bool(row["finish"]) for row in rows] == [one.finish is not None for one in engine]
    assert [row["share"].replace("\xa0", " ") for row in rows if row["usual"]] == ["60 %"]
    assert answer.context["chart"] is not None


def with_a_gap():
    rows = night_prices().splitlines()
    return "\n".join(rows[:9] + rows[12:])


def aws(zones=("us-east-1a",)):
    return json.dumps({"SpotPriceHistory": [
        {"AvailabilityZone": zone, "InstanceType": "p5", "ProductDescription": "Linux", "SpotPrice": "20",
         "Timestamp": (MONDAY + timedelta(hours=i)).isoformat()}
        for zone in zones for i in range(30)
    ]})  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"file": file(night_prices().replace(",100,CNY", ",-100,CNY", 1))}, "file", "-100"),
        ({"file": file(night_prices().replace(",100,CNY", ",100,USD", 1))}, "file", "several currencies"),
        ({"file": file(with_a_gap())}, "file", "gap of 4"),
        ({"file": file("time;cost\n1;2")}, "file", "timestamp"),
        ({"file": file("{")}, "file", "not valid JSON"),
        ({"file": file(aws(("us-east-1a", "us-east-1b")))}, "series", "several series"),
        ({"file": file(aws())}, "on_demand", "USD"),
        ({"file": file(night_prices()), "work_hours": "-1"}, "work_hours", "0.01"),
        ({"file": file(night_prices()), "on_demand": "0"}, "on_demand", "0.000001"),
        ({}, "file", "required"),
    ],
)  # fmt: skip
def test_what_is_wrong_stands_at_its_field(w, client, changes, field, told):
    client.force_login(w.requester)
    answer = client.post(reverse("bids"), {**WORK, **changes})

    assert answer.status_code == 422
    assert told in str(answer.context["form"].errors[field])


def test_the_api_gives_the_same_rungs_and_names_what_is_wrong(w, client):
    client.force_login(w.requester)
    work = {
        "on_demand": "150",
        "currency": "CNY",
        "work_hours": 60,
        "interval_hours": 2,
        "checkpoint_hours": 0.05,
    }
    answer = client.post(
        reverse("api-bids"), {**work, "shares": [0.6], "file": file(night_prices())}
    )

    assert answer.status_code == 200
    (rung,) = answer.json()["rungs"]
    (engine,) = bids.ladder(night_history(), JOB, cny("150"), [0.6])
    assert rung["cost"]["amount"] == str(engine.cost.amount)
    assert rung["finish"] == engine.finish.isoformat()
    assert answer.json()["suggested"]["currency"] == "CNY"

    refused = client.post(
        reverse("api-bids"), {**work, "file": file(night_prices().replace("CNY", "USD"))}
    )
    assert refused.status_code == 422
    assert "on_demand" in refused.content.decode()
    client.logout()
    assert client.post(reverse("api-bids"), work).status_code in (401, 403)


def test_a_file_that_is_too_large_is_refused_and_the_notice_is_one_constant(w, client, monkeypatch):
    monkeypatch.setattr(bid_ladder.check_size, "__defaults__", (1000,))
    client.force_login(w.requester)
    answer = client.post(reverse("bids"), {**WORK, "file": file(night_prices())})
    assert answer.status_code == 422
    assert "the limit is 1000" in str(answer.context["form"].errors["file"])
    body = {
        "file": file(night_prices()),
        "on_demand": "150",
        "currency": "CNY",
        "work_hours": 60,
        "interval_hours": 2,
    }
    refused = client.post(reverse("api-bids"), body)
    assert refused.status_code == 422
    assert "1000" in refused.content.decode()
    usual = defaults.value("spot.notice_seconds")
    assert BidForm().fields["notice_seconds"].initial == usual
    assert BidInput().fields["notice_hours"].default == usual / 3600
