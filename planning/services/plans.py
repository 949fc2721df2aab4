"""Choosing one plan of a study for a revision."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition
from core.exchange import rate_on
from core.messages import msg
from core.models import User
from core.money import CURRENCIES, ExchangeRate, Money
from core.organisation import organisation, today
from planning import policies
from planning.models.plans import PURCHASE_MODES, PaymentChoice, PlanChoice, SpendKind
from planning.models.requests import RequestRevision
from planning.models.studies import Study
from planning.services.approvals import start_review
from planning.services.moves import lock_request, touch
from planning.states import RequestStatus, StudyStatus

USABLE = (StudyStatus.READY, StudyStatus.PUBLISHED)


@transaction.atomic
def choose_plan(
    *, revision_id: int, study_id: int, plan_key: str, by: User, version: int | None = None
) -> PlanChoice:
    """Fix one plan of a finished study for the current revision, with today's rate; on a submitted request the review
    starts.

    The study may have been made for an earlier revision with the same content. Raises NotPermitted,
    InvalidTransition, InputError, MissingRate or StaleData.
    """
    request_id = RequestRevision.objects.values_list("request_id", flat=True).get(pk=revision_id)
    request = lock_request(request_id, version)
    policies.require_action(by, "choose_plan", request)
    revision = request.current
    if revision.pk != revision_id:
        raise InvalidTransition(
            msg("%(revision)s is not the current revision", revision=revision_id)
        )
    study = Study.objects.select_related("revision__request").get(pk=study_id)
    if (
        study.revision.request_id != request.pk
        or study.revision.compute_hash() != revision.compute_hash()
    ):
        raise InputError("study", msg("This study was made for another content"), value=study_id)
    if study.status not in USABLE:
        raise InvalidTransition(
            msg("The study is in state %(state)s: no plan can be chosen", state=study.status)
        )
    facts = _read(_find(study, plan_key))
    money = Money(facts.pop("amount"), facts.pop("currency"))
    rate, base = _to_base(money)
    PlanChoice.objects.filter(revision=revision).delete()
    plan = PlanChoice.objects.create(
        revision=revision,
        study=study,
        plan_key=plan_key,
        amount=money.amount,
        currency=money.currency,
        base_amount=base.amount,
        base_currency=base.currency,
        rate=rate.rate,
        rate_date=rate.as_of,
        rate_source=rate.source,
        chosen_by=by,
        **facts,
    )
    record(
        "plan.chosen",
        on=request,
        by=by,
        revision=revision.number,
        plan=plan_key,
        amount=str(money),
        base=str(base),
        rate=str(rate.rate),
        rate_date=rate.as_of.isoformat(),
    )
    if request.status == RequestStatus.SUBMITTED:
        start_review(request=request, by=by)
    else:
        touch(request)
    return plan


def _find(study: Study, plan_key: str) -> dict[str, Any]:
    for plan in (study.result or {}).get("plans", []):
        if plan.get("key") == plan_key:
            found: dict[str, Any] = plan
            return found
    raise InputError("plan_key", msg("The study has no plan %(key)s", key=plan_key), value=plan_key)


def _read(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan's facts with their types. A plan without a price cannot be chosen: missing is not zero."""
    try:
        amount = Decimal(str(plan["amount"]))
    except (KeyError, InvalidOperation):
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        raise InputError(
            "amount",
            msg("This plan has no price, so it cannot be chosen"),
            value=str(plan.get("amount")),
        )
    mode, currency = plan.get("mode"), plan.get("currency")
    if mode not in PaymentChoice.values:
        raise DomainError(
            msg("The study has a way of paying that is not known: %(mode)s", mode=str(mode))
        )
    if currency not in CURRENCIES:
        raise DomainError(msg("%(value)s is not a currency in use here", value=str(currency)))
    derived = SpendKind.PURCHASE if mode in PURCHASE_MODES else SpendKind.CLOUD
    return {
        "accelerator_slug": plan["accelerator_slug"],
        "cards": int(plan["cards"]),
        "servers": None if plan.get("servers") is None else int(plan["servers"]),
        "mode": mode,
        "spend_kind": plan.get("spend_kind") or derived,
        "amount": amount,
        "currency": currency,
        "summary": plan.get("summary") or {},
    }


def _to_base(money: Money) -> tuple[ExchangeRate, Money]:
    """(one unit of the plan's currency in the organisation's, the converted amount)."""
    currency = organisation().currency
    found = rate_on(money.currency, currency, today())
    if found.base == found.quote:
        return found, money.rounded()
    rate = (
        found.rate if found.base == money.currency else (1 / found.rate).quantize(Decimal("1e-8"))
    )
    return (
        ExchangeRate(money.currency, currency, rate, found.as_of, found.source),
        money.convert(found),
    )
