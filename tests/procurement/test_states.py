"""Who may take which step: one table, walked over every role, by page and by API."""

from __future__ import annotations

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.machines import transitions
from core.organisation import today
from procurement.forms.steps import AMENDMENT_STEPS, BY_NAME, MODELS, STEPS
from procurement.models import (
    Acceptance,
    Asset,
    Award,
    BurnInRun,
    Delivery,
    Invoice,
    OrderRevision,
    PurchaseOrder,
    Quote,
    Rfq,
    Rma,
    Substitution,
    Vendor,
)
from procurement.routes.buying_api import PLURALS
from procurement.services import invoices, orders, substitutions
from procurement.states import MACHINES, Actor
from tests.procurement import builders as b

PROCUREMENT, APPROVER, OPERATIONS, FINANCE = "procurement", "approver", "operations", "finance"
# What an organisation writes down: which role may take which step. Everyone else is refused.
MAY: dict[str, dict[str, set[str]]] = {
    "vendor": {"add-contact": {PROCUREMENT}, "block": {PROCUREMENT, FINANCE}, "unblock": {FINANCE, APPROVER}},
    "rfq": {"publish": {PROCUREMENT}, "extend": {PROCUREMENT}, "close": {PROCUREMENT},
            "open": {PROCUREMENT, APPROVER, FINANCE}, "cancel": {PROCUREMENT},
            "state-conflict": {PROCUREMENT, APPROVER, FINANCE}, "record-concession": {PROCUREMENT}},
    "quote": {"extend": {PROCUREMENT}, "withdraw": {PROCUREMENT}, "disqualify": {APPROVER}},
    "award": {"approve": {APPROVER}, "reject": {APPROVER}, "withdraw": {PROCUREMENT},
              "send-letters": {PROCUREMENT}},
    "order": {"issue": {PROCUREMENT}, "agree-over": {APPROVER}, "acknowledge": {PROCUREMENT}, "close": {FINANCE},
              "cancel": {PROCUREMENT, APPROVER}, "draw-down": {OPERATIONS, FINANCE}, "substitute": {PROCUREMENT},
              "set-checklist-item": {PROCUREMENT}, "set-precedence": {PROCUREMENT},
              "deliver-to": {PROCUREMENT}},
    "substitution": {"consent": {APPROVER}, "refuse": {APPROVER}},
    "amendment": {"approve": {APPROVER}, "reject": {APPROVER}},
    "delivery": {"register-warranty": {OPERATIONS, PROCUREMENT}, "note-measurement": {OPERATIONS},
                 "turn-away": {OPERATIONS}, "reverse": {OPERATIONS}, "start-burn-in": {OPERATIONS},
                 "complete-ready": {OPERATIONS}, "propose-acceptance": {OPERATIONS}},
    "asset": {"install": {OPERATIONS}, "report-fault": {OPERATIONS}, "retire": {OPERATIONS}},
    "burn-in": {"decide-item": {OPERATIONS}, "waive-item": {APPROVER}, "interrupt": {OPERATIONS},
                "resume": {OPERATIONS}, "complete": {OPERATIONS}, "fail": {OPERATIONS}, "abandon": {OPERATIONS}},
    "acceptance": {"sign": {APPROVER}, "refuse": {APPROVER}, "withdraw": {OPERATIONS}},
    "invoice": {"match": {FINANCE}, "override": {FINANCE}, "approve": {FINANCE, APPROVER}, "pay": {FINANCE},
                "void": {FINANCE}},
    "rma": {"file": {OPERATIONS, PROCUREMENT}, "authorise": {PROCUREMENT}, "deny": {PROCUREMENT},
            "ship": {OPERATIONS}, "receive-replacement": {OPERATIONS}, "receive-repaired": {OPERATIONS},
            "credit": {FINANCE}, "withdraw": {OPERATIONS, PROCUREMENT}},
}  # fmt: skip
ACTOR_OF = {
    Actor.BUYER: PROCUREMENT,
    Actor.APPROVER: APPROVER,
    Actor.OPERATIONS: OPERATIONS,
    Actor.FINANCE: FINANCE,
}
ROLE_OF_PERSON = {
    "requester": None, "lead": APPROVER, "cto": APPROVER, "finance": FINANCE, "procurement": PROCUREMENT,
    "operations": OPERATIONS, "auditor": None, "admin": None, "superuser": None, "outsider": None,
}  # fmt: skip


def test_every_step_is_in_the_table_and_agrees_with_the_states():
    written = {(noun, action) for noun, actions in MAY.items() for action in actions}
    assert written == set(BY_NAME)
    for step in (*STEPS, *AMENDMENT_STEPS):
        model = OrderRevision if step.noun == "amendment" else MODELS[step.noun]
        rules = [rule for rule in model.RULES if rule.action == step.rule]
        allowed = {ACTOR_OF[a] for rule in rules for a in rule.actors if a in ACTOR_OF}
        assert allowed == MAY[step.noun][step.action], (step.noun, step.action)


def test_every_state_can_be_reached_and_is_an_end_or_can_be_left():
    made = {"draft", "active", "submitted", "late", "proposed", "expected", "received", "running", "captured",
            "selected", "binding"}  # fmt: skip
    for name, (states, rules) in MACHINES.items():
        table = transitions(rules)
        reached = {target for targets in table.values() for target in targets}
        for state in states.values:
            assert state in reached | made, (name, state)
        named = {state for rule in rules for state in (*rule.sources, *rule.targets)}
        assert named <= set(states.values), name


def example() -> tuple[b.Shop, dict[str, object]]:
    s = b.shop()
    delivery = b.burned_in(s, b.BURN_FAULTY)
    b.proposed_acceptance(s, delivery)
    orders.propose_amendment(
        order_id=delivery.order_id,
        changes={1: {"quantity": "9"}},
        reason="one more",
        by=s.procurement,
    )
    invoices.capture_invoice(
        order_id=delivery.order_id, number="INV-1", dated_on=today(), currency="CNY", by=s.finance,
        lines=[{"position": 1, "quantity": "1", "unit_price": "250000", "tax_rate": "0.13"}],
        stated_tax="32500", stated_gross="282500",
    )  # fmt: skip
    substitutions.propose_substitution(
        order_id=delivery.order_id, position=1, part_number="OTHER", description="Other", reason="sold out",
        by=s.procurement,
    )  # fmt: skip
    models = {
        "substitution": Substitution,
        "vendor": Vendor, "rfq": Rfq, "quote": Quote, "award": Award, "order": PurchaseOrder,
        "amendment": OrderRevision, "delivery": Delivery, "asset": Asset, "burn-in": BurnInRun,
        "acceptance": Acceptance, "invoice": Invoice, "rma": Rma,
    }  # fmt: skip
    return s, {noun: model.objects.order_by("pk").last() for noun, model in models.items()}


BODY = {
    "over_reason": "because", "paid_on": "2026-01-01", "amount": "1",
    "reason": "because", "note": "because", "code": "A1.4", "result": "pass", "fault": "x", "site": "S", "name": "N",
    "vendor_number": "V", "tracking": "T", "serial": "NEW", "outcome": "repaired", "deadline": "2099-01-01T00:00",
    "valid_until": "2099-01-01", "promised_on": "2099-01-01", "vendor_id": "1", "round": "1", "subject": "price",
    "from_value": "a", "to_value": "b", "conceded_by": "c", "agreed_on": "2026-01-01", "position": "1",
    "kind": "accelerator", "weight": "review", "text": "T", "criterion": "C",
    "evidence_id": "1", "benchmark": "hpl", "value": "1", "unit": "Gflop/s",
    "month": "2026-01-01", "quantity": "1", "part_number": "P", "description": "D",
    "precedence": "quote", "registered_on": "2026-01-01",
}  # fmt: skip


@pytest.mark.django_db
@pytest.mark.slow
def test_who_is_not_in_the_table_is_refused_by_page_and_by_api_and_changes_nothing(client):
    s, objects = example()
    before = {noun: (obj.status, getattr(obj, "version", 0)) for noun, obj in objects.items()}
    for person, role in ROLE_OF_PERSON.items():
        user = getattr(s, person)
        client.force_login(user)
        api = APIClient()
        api.force_authenticate(user)
        for (noun, action), step in BY_NAME.items():
            if role in MAY[noun][action]:
                continue
            obj = objects[noun]
            page = client.post(reverse("procurement-step", args=[noun, obj.pk, action]), BODY)
            body = {
                name: BODY[name]
                for name in (step.form.base_fields if step.form else {})
                if name in BODY
            }
            if "deadline" in body:
                body["deadline"] = "2099-01-01T00:00:00Z"
            answer = api.post(
                f"/api/v1/procurement/{PLURALS[noun]}/{obj.pk}/{action}/", body, format="json"
            )
            codes = (page.status_code, answer.status_code)
            # 404 where the row, or its being a price, is hidden from this person.
            assert set(codes) <= {403, 404}, (person, noun, action, codes, answer.content)
    for noun, obj in objects.items():
        obj.refresh_from_db()
        assert (obj.status, getattr(obj, "version", 0)) == before[noun], noun
