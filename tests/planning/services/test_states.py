"""Every part × every state × every action on a request, against a table written by hand from the product's rules."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import product

import pytest
from django.conf import settings
from django.db import transaction

from core.audit import trail
from core.errors import InvalidTransition, NotPermitted
from core.messages import msg
from planning import policies
from planning.management.commands.draw_states import draw
from planning.models import CapacityRequest
from planning.services import requests
from planning.services.regroup import merge_requests, split_request
from planning.states import MACHINES, REQUEST_RULES, RequestStatus, actions_of
from tests.planning import builders

pytestmark = pytest.mark.django_db

# action → states → people of builders.World who may. Everything not written here is refused.
ALLOWED: dict[str, dict[str, str]] = {
    "edit": {"draft": "requester lead"},
    "submit": {"draft": "requester lead"},
    "choose_plan": {"draft": "requester lead procurement", "submitted": "requester lead procurement"},
    "split": {"draft": "requester lead"},
    "merge": {"draft": "requester lead"},
    "recall": {"submitted": "requester", "in_review": "requester"},
    "revise": {"changes_requested": "requester lead", "approved": "requester lead", "sourcing": "requester lead"},
    "start_sourcing": {"approved": "procurement"},
    "fulfil": {"sourcing": "procurement"},
    "cancel": {
        "draft": "requester lead", "submitted": "requester lead", "in_review": "requester lead",
        "changes_requested": "requester lead", "approved": "cto", "sourcing": "cto",
    },
    "approve": {"in_review": "lead cto"},
    "return": {"in_review": "lead cto"},
    "reject": {"in_review": "lead cto"},
}  # fmt: skip
NEXT = {
    "split": {"cancelled"}, "merge": {"cancelled"},
    "edit": {"draft"}, "submit": {"in_review"}, "choose_plan": {"draft", "in_review"}, "recall": {"draft"},
    "revise": {"draft"}, "start_sourcing": {"sourcing"}, "fulfil": {"fulfilled"}, "cancel": {"cancelled"},
    "approve": {"approved"}, "return": {"changes_requested"}, "reject": {"rejected"},
}  # fmt: skip


def twin(request: CapacityRequest) -> CapacityRequest:
    """A draft with the same content, which its requester may merge."""
    return requests.copy_request(request_id=request.pk, by=request.requester)


def attempt(action: str, request: CapacityRequest, by) -> None:
    step = request.current.steps.order_by("-pk").first()
    study = request.current.studies.filter(status="ready").first()
    calls: dict[str, Callable[[], object]] = {
        "edit": lambda: requests.update_draft(request_id=request.pk, by=by, title="New"),
        "submit": lambda: requests.submit_request(request_id=request.pk, by=by),
        "choose_plan": lambda: builders.choose(request, study or builders.study(request), by=by),
        "split": lambda: split_request(
            request_id=request.pk, shares=[Decimal(50), Decimal(50)], by=by
        ),
        "merge": lambda: merge_requests(request_ids=[request.pk, twin(request).pk], by=by),
        "recall": lambda: requests.recall(request_id=request.pk, by=by, reason="r"),
        "revise": lambda: requests.revise(request_id=request.pk, by=by, reason="r"),
        "start_sourcing": lambda: requests.start_sourcing(request_id=request.pk, by=by),
        "fulfil": lambda: requests.record_fulfilment(request_id=request.pk, accepted=8, by=by),
        "cancel": lambda: requests.cancel_request(request_id=request.pk, by=by, reason="r"),
    }
    if action in calls:
        calls[action]()
    elif step is None:
        raise InvalidTransition(msg("no step"))
    else:
        builders.approvals.decide(
            step_id=step.pk, decision=action, by=by, seen_hash=step.content_hash, reason="r"
        )


@pytest.mark.parametrize("state", RequestStatus.values)
def test_only_the_written_steps_are_possible(state):
    w = builders.world()
    request = builders.at(w, state)
    builders.fund(w, "5000")
    entries = trail(request).count()
    for action, (name, person) in product(ALLOWED, w.people().items()):
        may = name in ALLOWED[action].get(state, "").split()
        case = f"{name} {action} in {state}"
        fresh = CapacityRequest.objects.get(pk=request.pk)
        if action in actions_of(REQUEST_RULES) and action not in ("approve", "return", "reject"):
            assert policies.can(person, action, fresh) == may, case
        with transaction.atomic():
            if may:
                attempt(action, fresh, person)
                assert CapacityRequest.objects.get(pk=request.pk).status in NEXT[action], case
            else:
                with pytest.raises((NotPermitted, InvalidTransition)), transaction.atomic():
                    attempt(action, fresh, person)
                now = CapacityRequest.objects.get(pk=request.pk)
                assert (now.status, now.version) == (state, request.version), case
                assert trail(request).count() == entries, case
            transaction.set_rollback(True)


def test_the_table_names_every_action_a_person_can_take():
    of_people = {
        rule.action for rule in REQUEST_RULES if {str(actor) for actor in rule.actors} != {"system"}
    }
    assert of_people <= set(ALLOWED)


def test_every_state_can_be_reached_and_left_or_is_an_end():
    ends = {
        "Capacity request": {"fulfilled", "rejected", "cancelled"},
        "Study": {"superseded"},
        "Approval step": {"rejected", "returned", "cancelled", "void"},
        "Budget change": {"posted", "declined"},
        "Allocation": {"released"},
    }
    for name, (states, rules) in MACHINES.items():
        reached = {states.values[0]} | {target for rule in rules for target in rule.targets}
        left = {source for rule in rules for source in rule.sources}
        assert reached == set(states.values), name
        assert set(states.values) - left == ends[name], name


def test_the_documentation_shows_these_tables():
    assert (settings.BASE_DIR / "docs" / "states.md").read_text(encoding="utf-8") == draw(), (
        "run manage.py draw_states"
    )
