"""Forecast, costs of teams and what-if over the API."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.errors import InputError
from core.http import api_user
from core.messages import msg
from core.models import CURRENCY_CHOICES
from core.organisation import today
from core.policies import require
from planning import policies
from planning.api.requests import checked
from planning.api.serializers import BalanceSerializer, ChangeSerializer
from planning.forms.forecast import MonthForm
from planning.selectors.forecast import forecast
from planning.selectors.probabilities import probabilities
from planning.selectors.showback import showback
from planning.services import scenarios
from planning.services.probabilities import set_prior
from planning.services.scenarios import Change


class SpendForecastSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    allotted = serializers.DecimalField(18, 3)
    actual = serializers.DecimalField(18, 3)
    bound = serializers.DecimalField(18, 3)
    run_rate = serializers.DecimalField(18, 3, allow_null=True)
    months_left = serializers.IntegerField()
    pipeline = serializers.DecimalField(18, 3)
    low = serializers.DecimalField(18, 3)
    expected = serializers.DecimalField(18, 3)
    high = serializers.DecimalField(18, 3)


class ProbabilitySerializer(serializers.Serializer[Any]):
    """`value` is what weighs: `agreed` of `reached`, drawn to `prior` as if that were `weight` more requests."""

    stage = serializers.CharField()
    value = serializers.FloatField()
    reached = serializers.IntegerField()
    agreed = serializers.IntegerField()
    observed = serializers.FloatField(allow_null=True)
    prior = serializers.FloatField()
    weight = serializers.IntegerField()
    version = serializers.IntegerField()


class PriorInput(serializers.Serializer[Any]):
    stage = serializers.CharField()
    share = serializers.DecimalField(5, 4)
    weight = serializers.IntegerField()
    version = serializers.IntegerField(required=False)


class Probabilities(APIView):
    """How likely each stage is to be approved; POST changes what is assumed of one (finance)."""

    @extend_schema(responses=ProbabilitySerializer(many=True))
    def get(self, request: Request) -> Response:
        require(policies.can_try_scenarios(api_user(request)))
        return Response(ProbabilitySerializer(probabilities().values(), many=True).data)

    @extend_schema(request=PriorInput, responses=ProbabilitySerializer)
    @idempotent
    def post(self, request: Request) -> Response:
        data = {**checked(PriorInput(data=request.data)), "version": seen_version(request)}
        row = set_prior(by=api_user(request), **data)
        return Response(ProbabilitySerializer(probabilities()[row.stage]).data)


class YearForecastSerializer(serializers.Serializer[Any]):
    year = serializers.IntegerField()
    currency = serializers.CharField()
    kinds = SpendForecastSerializer(many=True)


class ShowbackSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="allocation.team.slug")
    request = serializers.CharField(source="allocation.request.reference")
    accelerator = serializers.CharField(source="allocation.pool.accelerator_slug")
    card_days = serializers.IntegerField()
    utilisation = serializers.FloatField(allow_null=True)
    cost = serializers.DecimalField(18, 3, source="cost.amount", default=None)
    currency = serializers.CharField(source="cost.currency", default=None)


class ChangeInput(serializers.Serializer[Any]):
    order = serializers.CharField(required=False, allow_blank=True, default="")
    quarters = serializers.IntegerField(required=False, default=0)
    currency = serializers.ChoiceField(choices=CURRENCY_CHOICES, required=False, default="")
    rate_percent = serializers.DecimalField(7, 2, required=False, default=Decimal(0))
    accelerator = serializers.CharField(required=False, allow_blank=True, default="")
    price_percent = serializers.DecimalField(7, 2, required=False, default=Decimal(0))


class ProposeInput(ChangeInput):
    reason = serializers.CharField()


class BudgetLineSerializer(serializers.Serializer[Any]):
    label = serializers.CharField()  # type: ignore[assignment]  # a field of the answer, not the serializer's label
    quarter = serializers.CharField()
    kind = serializers.CharField()
    before = BalanceSerializer()
    after = BalanceSerializer()


class CapacityLineSerializer(serializers.Serializer[Any]):
    accelerator = serializers.CharField()
    usable = serializers.SerializerMethodField()

    def get_usable(self, line: scenarios.CapacityLine) -> list[list[Any]]:
        return [[old.first.isoformat(), old.usable, new.usable] for old, new in line.months]


class WhatIfOutcomeSerializer(serializers.Serializer[Any]):
    lines = BudgetLineSerializer(many=True)
    capacity = CapacityLineSerializer(many=True)


class BudgetForecast(APIView):
    """To the end of a fiscal year, of the teams the caller may see."""

    @extend_schema(parameters=[OpenApiParameter("year", int)], responses=YearForecastSerializer)
    def get(self, request: Request) -> Response:
        raw = request.query_params.get("year", "")
        if raw and not (raw.isdecimal() and 2000 <= int(raw) <= 2200):
            raise InputError("year", msg("This is no year"), value=raw, limit="2000 … 2200")
        found = forecast(api_user(request), year=int(raw) if raw else None)
        return Response(YearForecastSerializer(found).data)


class Showback(APIView):
    """What each team's cards cost in a month (`?month=2026-11`)."""

    @extend_schema(
        parameters=[OpenApiParameter("month", str)], responses=ShowbackSerializer(many=True)
    )
    def get(self, request: Request) -> Response:
        form = MonthForm(request.query_params)
        if not form.is_valid():
            raise InputError("month", msg("This is no month"), value=request.query_params["month"])
        rows = showback(api_user(request), form.cleaned_data["month"] or today())
        return Response(ShowbackSerializer(rows, many=True).data)


class WhatIf(APIView):
    """Every budget and capacity line that a change would move. Writes nothing."""

    @extend_schema(request=ChangeInput, responses=WhatIfOutcomeSerializer)
    def post(self, request: Request) -> Response:
        data = checked(ChangeInput(data=request.data))
        return Response(
            WhatIfOutcomeSerializer(scenarios.what_if(Change(**data), by=api_user(request))).data
        )


class Propose(APIView):
    """Turn a change into proposals for the budgets (finance)."""

    @extend_schema(request=ProposeInput, responses={201: ChangeSerializer(many=True)})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(ProposeInput(data=request.data))
        reason = data.pop("reason")
        made = scenarios.propose(Change(**data), reason=reason, by=api_user(request))
        return Response(ChangeSerializer(made, many=True).data, status=201)
