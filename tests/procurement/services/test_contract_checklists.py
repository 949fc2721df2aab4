"""Checklists: whole as shipped, copied into the contract, changed with a reason until it binds, followed."""

import json
import re

import pytest
from django.utils import translation

from core.errors import InputError, InvalidTransition, NotPermitted
from procurement.models import BurnInRun, ChecklistTemplate
from procurement.models.burn_in import ItemResult
from procurement.services import burn_in, orders
from procurement.services.checklists import template_for
from procurement.services.contract_checklists import contract_checklists, deviations, set_item
from tests.procurement import builders as b
from tests.procurement.builders import DATA, SAMPLES

CODES = {
    "A0": 5,
    "A1": 7,
    "A2": 15,
    "A3": 6,
    "A4": 14,
    "A5": 4,
    "A6": 8,
    "A7": 5,
    "A8": 4,
    "A9": 6,
    "A10": 7,
    "A11": 6,
}


@pytest.fixture
def shipped():
    rows = json.loads((DATA / "checklists.json").read_text("utf-8"))
    return {row["slug"]: row for row in rows}


def test_the_shipped_templates_hold_every_item_of_the_practice(shipped):
    wanted = {f"{part}.{n}" for part, most in CODES.items() for n in range(1, most + 1)}
    there = {item["code"] for slug in ("card", "server") for item in shipped[slug]["items"]}
    assert there == wanted
    assert [item["code"] for item in shipped["cloud"]["items"]] == [f"B{n}" for n in range(1, 16)]
    for slug in ("card", "server", "cloud"):
        for item in shipped[slug]["items"]:
            assert item["criterion"], item
            assert item["evidence"], item
            assert item["evidence_zh"], item
            assert item["criterion_zh"] != item["criterion"], item


def test_items_ask_for_rules_that_readers_know(shipped):
    source = "".join(
        path.read_text("utf-8")
        for path in (SAMPLES.parents[2] / "procurement" / "evidence").glob("*.py")
    )
    known = set(re.findall(r'"([a-z0-9_]+)"', source)) | {
        f"{name}_differs" for name in ("power_default", "power_max", "max_sm", "max_memory")
    } | {f"{way}_{what}" for way in ("h2d", "d2h") for what in ("low", "below_peers")}  # fmt: skip
    known |= {
        f"{fact}_not_known"
        for fact in ("device_id", "memory", "power", "clocks", "vbios", "part_number")
    }
    for row in shipped.values():
        for item in row["items"]:
            assert set(item["rules"]) <= known, item


@pytest.mark.django_db
class TestContract:
    def test_the_order_pins_its_checklists_when_it_is_issued(self):
        s = b.shop()
        order = b.issued(s)
        kinds = {row.asset_kind: row for row in contract_checklists(order)}
        assert set(kinds) == {"accelerator", "node"}
        assert kinds["accelerator"].base == template_for("accelerator")
        assert deviations(kinds["accelerator"]) == []
        # A newer template changes nothing for it.
        ChecklistTemplate.objects.create(
            slug="card", version=99, asset_kind="accelerator", title="x", title_zh="x", source="x"
        )
        assert template_for("accelerator", order) == kinds["accelerator"]

    def test_a_draft_is_changed_item_by_item_and_shows_how_it_deviates(self):
        s = b.shop()
        order = b.awarded(s).orders.get()
        change = {
            "order_id": order.pk,
            "kind": "accelerator",
            "reason": "Agreed on 12 May",
            "by": s.procurement,
        }
        set_item(code="A2.12", weight="review", **change)
        set_item(code="A5.2", weight="left_out", **change)
        set_item(
            code="Z1", weight="blocking", text="Own model", criterion="≥ 900 tokens/s", **change
        )
        checklist = template_for("accelerator", order)
        assert (checklist.version, checklist.base.order) == (4, None)
        told = [str(row.words) for row in deviations(checklist)]
        assert [row.code for row in deviations(checklist)] == ["A2.12", "A5.2", "Z1"]
        assert "For review instead of Blocking" in told[0]
        order = b.aged(orders.issue_order(order_id=order.pk, by=s.procurement))
        with pytest.raises(InvalidTransition):
            set_item(code="A2.11", weight="information", **change)
        runs = b.burning(s, b.received(s, order))
        codes = set(runs[0].items.values_list("item__code", flat=True))
        assert "Z1" in codes
        assert "A5.2" not in codes
        assert runs[0].template == checklist

    @pytest.mark.parametrize("code", ["A4.1", "A9.1"])
    @pytest.mark.parametrize("weight", ["left_out", "review", "information"])
    def test_hours_and_promises_stand_in_every_contract(self, code, weight):
        s = b.shop()
        order = b.awarded(s).orders.get()
        with pytest.raises(InvalidTransition, match="stands in every contract"):
            set_item(
                order_id=order.pk,
                kind="accelerator",
                code=code,
                weight=weight,
                reason="x",
                by=s.procurement,
            )

    def test_only_buyers_change_it_and_with_words(self):
        s = b.shop()
        order = b.awarded(s).orders.get()
        given = {
            "order_id": order.pk,
            "kind": "accelerator",
            "code": "Z1",
            "weight": "blocking",
            "reason": "x",
        }
        for who in (s.engineer, s.cto, s.auditor, s.requester):
            with pytest.raises(NotPermitted):
                set_item(by=who, **given)
        with pytest.raises(InputError) as refused:
            set_item(by=s.procurement, **given)
        assert refused.value.field == "criterion"
        with pytest.raises(InputError) as refused:
            set_item(by=s.procurement, **{**given, "kind": "instance"})
        assert refused.value.field == "kind"

    @pytest.mark.parametrize(
        ("field", "limit"), [("code", 12), ("text", 200), ("criterion", 300), ("evidence", 120)]
    )
    def test_words_beyond_the_limit_are_refused_and_not_cut(self, field, limit):
        s = b.shop()
        order = b.awarded(s).orders.get()
        given = {
            "code": "Z1",
            "text": "Own model",
            "criterion": "≥ 900 tokens/s",
            "evidence": "Log",
        }
        given |= {"order_id": order.pk, "kind": "accelerator", "weight": "blocking", "reason": "x"}
        with pytest.raises(InputError) as refused:
            set_item(by=s.procurement, **{**given, field: "X" * (limit + 1)})
        assert (refused.value.field, refused.value.limit) == (field, limit)
        set_item(by=s.procurement, **{**given, field: "X" * limit})
        made = template_for("accelerator", order).items.get(
            criterion_zh__gt="", position__gt=0, code__in=("Z1", "X" * 12)
        )
        assert getattr(made, field) == "X" * limit

    @pytest.mark.parametrize("language", ["en", "zh-hans"])
    def test_words_change_in_the_language_they_are_read_in(self, language):
        s = b.shop()
        order = b.awarded(s).orders.get()
        was = template_for("accelerator").items.get(code="A2.12")
        with translation.override(language):
            set_item(
                order_id=order.pk, kind="accelerator", code="A2.12", weight=was.weight, reason="x",
                by=s.procurement, criterion="≥ 900 W",
            )  # fmt: skip
        checklist = template_for("accelerator", order)
        now = checklist.items.get(code="A2.12")
        changed, kept = ("criterion", "criterion_zh")[:: 1 if language == "en" else -1]
        assert getattr(now, changed) == "≥ 900 W"
        assert getattr(now, kept) == getattr(was, kept)
        for reader in ("en", "zh-hans"):
            with translation.override(reader):
                (told,) = deviations(checklist)
                assert "≥ 900 W" in str(told.words)

    def test_a_cloud_commitment_has_the_list_for_instances(self):
        s = b.shop()
        rfq = b.rfq(s)
        b.quote(s, rfq, lines=[b.line(kind="cloud", serialised=False)])
        b.quote(s, rfq, s.rival, "36000")
        b.rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="Both have answered")
        award = b.awards.propose_award(
            rfq_id=rfq.pk,
            quote_id=rfq.quotes.get(vendor=s.vendor).pk,
            reason=b.REASON,
            by=s.procurement,
        )
        order = b.awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
        assert [row.slug for row in contract_checklists(order)] == ["cloud"]

    def test_a_file_decides_before_a_person_and_outweighs_what_was_said_without_one(self):
        s = b.shop()
        delivery = b.received(s)
        b.burning(s, delivery)
        run = BurnInRun.objects.filter(delivery=delivery).first()
        burn_in.decide_item(run_id=run.pk, code="A4.11", result="pass", by=s.engineer)
        b.upload(s, delivery)
        row = run.items.get(item__code="A4.11")
        assert (row.result, row.decided_by) == (ItemResult.PASS, None)
        assert row.evidence is not None
        with pytest.raises(InvalidTransition):
            burn_in.decide_item(
                run_id=run.pk, code="A4.11", result="fail", note="no", by=s.engineer
            )

    @pytest.mark.parametrize("language", ["en", "zh-hans"])
    def test_page_and_api_show_it(self, client, language):
        s = b.shop()
        order = b.awarded(s).orders.get()
        s.procurement.language = language
        s.procurement.save()
        client.force_login(s.procurement)
        step = f"/procurement/steps/order/{order.pk}/set-checklist-item/"
        given = {
            "kind": "accelerator",
            "code": "A2.12",
            "weight": "information",
            "reason": "No portal",
        }
        answer = client.post(step, given)
        assert answer.status_code in (200, 302)
        page = client.get(f"/procurement/orders/{order.pk}/checklists/").content.decode()
        assert "A4.10" in page
        told = client.get(f"/api/v1/procurement/orders/{order.pk}/checklists/").json()["checklists"]
        card = next(row for row in told if row["kind"] == "accelerator")
        assert [row["code"] for row in card["deviations"]] == ["A2.12"]
        assert {row["slug"] for row in client.get("/api/v1/procurement/checklists/").json()["checklists"]} >= {
            "card", "server", "cloud"
        }  # fmt: skip
        client.force_login(s.outsider)
        assert client.get(f"/procurement/orders/{order.pk}/checklists/").status_code == 404
