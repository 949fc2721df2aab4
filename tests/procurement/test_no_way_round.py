"""No way round the proof: every address, by everybody, while something is missing, and then the way to acceptance.

The addresses come from the URL configuration and their bodies from the API's schema, so a new one is tried by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, transaction
from django.test import RequestFactory
from django.urls import URLPattern, reverse
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from core.errors import DomainError
from procurement import api_urls, urls
from procurement.forms.steps import BY_NAME
from procurement.models import (
    Acceptance,
    Asset,
    BurnInRun,
    ChecklistItem,
    Delivery,
    EvidenceFile,
    PurchaseOrder,
    RunItem,
    UnitVerdict,
)
from procurement.services import acceptance, burn_in
from procurement.services.burn_in_bulk import ACTIONS
from procurement.services.policy import set_purchasing_policy
from procurement.states import AcceptanceStatus, AssetStatus, BurnInStatus
from tests.procurement import builders as b

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PEOPLE = (
    "requester", "lead", "cto", "finance", "procurement", "operations", "engineer", "auditor", "admin", "superuser",
    "outsider",
)  # fmt: skip
CLOSEST = (
    "engineer",
    "cto",
    "superuser",
)  # the operator, the one who signs, and one who bypasses roles


# --- what is missing -------------------------------------------------------------------------------------------------


def burning(s: b.Shop, log: bytes | None = None, *, tick: bool = True) -> Delivery:
    delivery = b.received(s)
    b.burning(s, delivery)
    if log is not None:
        b.upload(s, delivery, content=log)
    if tick:
        b.tick(s, delivery)
    return delivery


def no_evidence(s: b.Shop) -> Delivery:
    delivery = b.received(s)
    b.burning(s, delivery)
    burn_in.decide_items(
        delivery_id=delivery.pk, codes=b.PEOPLE_ITEMS, result="pass", by=s.engineer
    )
    return delivery


def cut_off(s: b.Shop) -> Delivery:
    log = b.BURN_PASSED.read_bytes()
    return burning(s, log[: len(log) // 2])


def before_the_delivery(s: b.Shop) -> Delivery:
    end = timezone.now() - timedelta(days=60)
    return burning(s, b.ending(b.BURN_PASSED.read_bytes(), end.replace(microsecond=0)))


def an_hour_short(s: b.Shop) -> Delivery:
    """72 hours of evidence where the order asks for 73."""
    order = b.issued(s)
    PurchaseOrder.objects.filter(pk=order.pk).update(burn_in_hours=73)
    delivery = b.received(s, order)
    b.burning(s, delivery)
    b.upload(s, delivery)
    b.tick(s, delivery)
    return delivery


def a_break(s: b.Shop) -> Delivery:
    """All was proven; then the power went, and the clock started again."""
    delivery = burning(s, b.BURN_PASSED.read_bytes())
    for run in delivery.runs.all():
        burn_in.interrupt_run(run_id=run.pk, reason="Power", by=s.engineer)
        burn_in.resume_run(run_id=run.pk, by=s.engineer)
    return delivery


def clock_backwards(s: b.Shop) -> Delivery:
    """The stamps of the log in the opposite order."""
    log = b.BURN_PASSED.read_bytes()
    stamps = b.STAMP.findall(log)
    turned = iter(reversed(stamps))
    return burning(s, b.STAMP.sub(lambda _m: next(turned), log))


MISSING: dict[str, Callable[[b.Shop], Delivery]] = {
    "an hour short": an_hour_short,
    "no evidence": no_evidence,
    "cut off": cut_off,
    "log before the delivery": before_the_delivery,
    "a break": a_break,
    "clock backwards": clock_backwards,
}


# --- every address ---------------------------------------------------------------------------------------------------


def objects_of(delivery: Delivery) -> dict[str, int]:
    """The rows that an address may be about, by the first word of the address."""
    run = delivery.runs.order_by("pk").first()
    order = delivery.order
    line = order.lines.first()
    return {
        "deliveries": delivery.pk,
        "burn-in": run.pk,
        "burn-ins": run.pk,
        "assets": run.asset_id,
        "orders": order.pk,
        "amendments": order.revisions.first().pk,
        "substitutions": 1,
        "quotes": order.quote_id,
        "rfqs": order.quote.rfq_id,
        "awards": order.award_id,
        "vendors": order.vendor_id,
        "threads": line.request_id,
        "evidence": EvidenceFile.objects.values_list("pk", flat=True).first() or 1,
        "acceptances": Acceptance.objects.values_list("pk", flat=True).first() or 1,
        "invoices": 1,
        "rmas": 1,
    }


NOUNS = {
    "vendor": "vendors", "rfq": "rfqs", "quote": "quotes", "award": "awards", "order": "orders",
    "amendment": "amendments", "substitution": "substitutions", "delivery": "deliveries",
    "asset": "assets", "burn-in": "burn-ins",
    "acceptance": "acceptances", "invoice": "invoices", "rma": "rmas",
}  # fmt: skip
WORDS = (*ACTIONS, "pass", "complete", "accept", "sign", "complete-ready")


def addresses(delivery: Delivery, patterns: list[URLPattern]) -> Iterator[tuple[str, Any]]:
    """(address, view) of every pattern, with the rows of `delivery` in it."""
    rows = objects_of(delivery)
    for pattern in patterns:
        where = str(pattern.pattern)
        first = where.lstrip("^").split("/")[0]
        names = list(pattern.pattern.regex.groupindex)
        if "noun" in names:
            for noun, action in BY_NAME:
                yield (
                    reverse(pattern.name, args=[noun, rows[NOUNS[noun]], action]),
                    pattern.callback,
                )
            continue
        values: dict[str, list[Any]] = {
            name: {
                "pk": [rows.get(first, 1)],
                "action": list(WORDS),
                "kind": ["csv"],
                "language": ["en"],
            }.get(name, [1])
            for name in names
        }
        for combination in itertools.product(*values.values()):
            kwargs = dict(zip(values, combination, strict=True))
            yield reverse(pattern.name, kwargs=kwargs), pattern.callback


def everything(delivery: Delivery) -> dict[str, Any]:
    """A value for every field that any step asks for, chosen to help a cheat."""
    run = delivery.runs.order_by("pk").first()
    codes = list(ChecklistItem.objects.filter(template=run.template).values_list("code", flat=True))
    assets = list(delivery.runs.values_list("asset_id", flat=True))
    return {
        "codes": codes, "code": "A4.1", "result": "pass", "note": "Trust me", "reason": "Trust me, it is fine",
        "units": assets, "asset_ids": assets, "assets": assets,
        "runs": list(delivery.runs.values_list("pk", flat=True)),
        "value": "72 h", "hours": "1", "burn_in_hours": 1, "site": "S", "rack": "R", "serial": "NEW-1",
        "fault": "x", "exclusions": {}, "outcome": "repaired", "text": "x", "version": run.version,
        **{f"in_{pk}": "on" for pk in assets},
    }  # fmt: skip


@cache
def bodies() -> dict[tuple[str, str], dict[str, Any]]:
    """(method, path template) → the properties of the body that the API's schema names."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    found = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            for media in content.values():
                ref = media.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
                part = schema["components"]["schemas"].get(ref, {})
                found[method, path] = part.get("properties", {})
    return found


def attempts(
    delivery: Delivery, client: Any, api: APIClient
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(what, the attempt) for every address and method that may change something."""
    filled = everything(delivery)
    for url, _view in addresses(delivery, urls.urlpatterns):
        upload = SimpleUploadedFile("bad.log", b"Burning for 259200 seconds.\n")
        yield f"POST {url}", lambda url=url, f=upload: client.post(url, {**filled, "uploads": f})
    named = bodies()
    for url, view in addresses(delivery, api_urls.urlpatterns):
        kept = view.cls.http_method_names if hasattr(view, "cls") else []
        for method in ("post", "put", "patch", "delete"):
            if method not in kept or not hasattr(view.cls, method):
                continue
            shape = next(
                (
                    fields
                    for (verb, path), fields in named.items()
                    if verb == method and _fits(path, url)
                ),
                {},
            )
            body = {name: filled[name] for name in shape if name in filled}
            yield (
                f"{method.upper()} {url}",
                lambda m=method, u=url, j=body: getattr(api, m)(u, j, format="json"),
            )


def _fits(template: str, url: str) -> bool:
    ours, theirs = template.strip("/").split("/"), url.strip("/").split("/")
    return len(ours) == len(theirs) and all(
        a == b or a.startswith("{") for a, b in zip(ours, theirs, strict=True)
    )


def rolled_back(action: Callable[[], Any]) -> Any:
    """What `action` answers; whatever it changed is undone."""
    with transaction.atomic():
        try:
            return action()
        finally:
            transaction.set_rollback(True)


def accepted_anyway(s: b.Shop, delivery: Delivery) -> list[str]:
    """Units that get into service when those who may try everything they may."""
    for step in (
        lambda: burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer),
        lambda: [
            burn_in.complete_run(run_id=pk, by=s.engineer)
            for pk in delivery.runs.filter(status=BurnInStatus.RUNNING).values_list("pk", flat=True)
        ],
        lambda: acceptance.propose_acceptance(
            delivery_id=delivery.pk, by=s.engineer, reason="rest"
        ),
    ):
        try:
            with transaction.atomic():
                step()
        except DomainError:
            continue
    for proposal in Acceptance.objects.filter(status=AcceptanceStatus.PROPOSED):
        try:
            with transaction.atomic():
                acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto)
        except DomainError:
            continue
    done = Asset.objects.filter(status__in=[AssetStatus.BURNED_IN, AssetStatus.IN_SERVICE])
    return list(done.values_list("serial", flat=True))


@pytest.mark.parametrize("missing", MISSING)
def test_nobody_gets_round_what_is_missing(client, missing):
    s = b.shop()
    delivery = MISSING[missing](s)
    assert rolled_back(lambda: accepted_anyway(s, delivery)) == []
    everybody = PEOPLE if missing == "an hour short" else CLOSEST
    tried = reached = 0
    for name in everybody:
        user = getattr(s, name)
        client.force_login(user)
        api = APIClient()
        api.force_authenticate(user)
        for what, attempt in attempts(delivery, client, api):

            def act(attempt: Callable[[], Any] = attempt) -> tuple[int, list[str]]:
                answer = attempt()
                won = accepted_anyway(s, delivery) if answer.status_code < 400 else []
                return answer.status_code, won

            status, won = rolled_back(act)
            tried += 1
            reached += status < 400
            assert status < 500, (name, what)
            assert won == [], (name, what, status)
    assert tried > 100 * len(everybody)
    assert reached > 3 * len(CLOSEST)  # some steps are theirs to take; they only lead nowhere


def test_without_anything_missing_the_same_people_accept():
    """The attempt above is a fair one: it succeeds when nothing is missing."""
    s = b.shop()
    delivery = burning(s, b.BURN_PASSED.read_bytes())
    assert len(accepted_anyway(s, delivery)) == 8


@pytest.mark.parametrize("code", b.PEOPLE_ITEMS)
def test_one_open_blocking_item_stops_its_unit(code):
    s = b.shop()
    delivery = burning(s, b.BURN_PASSED.read_bytes(), tick=False)
    others = [other for other in (*b.PEOPLE_ITEMS, *b.REVIEW_ITEMS) if other != code]
    decided = burn_in.decide_items(
        delivery_id=delivery.pk, codes=others, result="pass", by=s.engineer, note="Seen"
    )
    assert decided == 8 * len(set(others))  # each item of each unit but the one
    assert accepted_anyway(s, delivery) == []


def test_who_administers_cannot_shorten_a_burn_in_that_an_order_binds():
    s = b.shop()
    delivery = b.received(s)
    set_purchasing_policy(by=s.admin, burn_in_hours=1)
    assert {run.required_seconds for run in b.burning(s, delivery)} == {72 * 3600}


def test_the_support_pages_change_nothing_of_procurement():
    request = RequestFactory().get("/support/")
    request.user = b.shop().superuser
    for model, pages in admin.site._registry.items():
        if model._meta.app_label == "procurement":
            assert not pages.has_add_permission(request), model
            assert not pages.has_change_permission(request), model
            assert not pages.has_delete_permission(request), model


# --- the database ----------------------------------------------------------------------------------------------------


def refused(action: Callable[[], Any]) -> bool:
    try:
        with transaction.atomic():
            action()
    except DatabaseError:
        return True
    return False


def test_the_database_refuses_a_pass_without_its_hours():
    delivery = burning(b.shop())
    run = BurnInRun.objects.filter(delivery=delivery)
    assert refused(lambda: run.update(status=BurnInStatus.PASSED))


def test_after_the_signature_the_database_keeps_what_it_rests_on():
    s = b.shop()
    signed = b.accepted(s)
    kept, run = EvidenceFile.objects.get(), BurnInRun.objects.first()
    assert kept.locked_at is not None
    for change in (
        lambda: EvidenceFile.objects.filter(pk=kept.pk).update(sha256="0" * 64),
        lambda: EvidenceFile.objects.filter(pk=kept.pk).update(verdict="fail"),
        lambda: EvidenceFile.objects.filter(pk=kept.pk).update(result={"gpus": []}),
        lambda: EvidenceFile.objects.filter(pk=kept.pk).update(locked_at=None),
        lambda: kept.verdicts.all()._raw_delete(kept.verdicts.db),
        lambda: kept.verdicts.update(verdict="fail"),
        lambda: UnitVerdict.objects.create(
            evidence=kept, asset=run.asset, bound_by="serial", verdict="pass"
        ),
        lambda: EvidenceFile.objects.all()._raw_delete(kept.verdicts.db),
        lambda: run.items.update(result="pass", value="made up"),
        lambda: RunItem.objects.all()._raw_delete(kept.verdicts.db),
        lambda: BurnInRun.objects.filter(pk=run.pk).update(covered_seconds=1_000_000),
        lambda: Acceptance.objects.filter(pk=signed.pk).update(evidence_index=[]),
        lambda: signed.units.update(included=False, reason="x"),
        lambda: Acceptance.objects.all()._raw_delete(kept.verdicts.db),
    ):
        assert refused(change)
    EvidenceFile.objects.filter(pk=kept.pk).update(altered_at=timezone.now())  # the alarm may ring


def test_a_proposal_over_altered_evidence_is_not_signed_by_anybody(client):
    s = b.shop()
    proposal = b.proposed_acceptance(s)
    kept = EvidenceFile.objects.get()
    with open(kept.file.file.path, "ab") as raw:
        raw.write(b" ")
    for name in PEOPLE:
        user = getattr(s, name)
        client.force_login(user)
        api = APIClient()
        api.force_authenticate(user)
        for what, attempt in attempts(proposal.delivery, client, api):
            if "/acceptances/" not in what and "/steps/acceptance/" not in what:
                continue
            rolled_back(attempt)
            assert not Asset.objects.filter(status=AssetStatus.IN_SERVICE).exists(), (name, what)
