"""The bid ladder over the API: the same computation as the page."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.money import CURRENCIES, Money, money_json
from planning.api.requests import checked
from planning.economics import bids, defaults
from planning.economics.bids import BidJob
from planning.services.bid_ladder import bid_ladder


class BidInput(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    series = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)
    encoding = serializers.CharField(required=False, allow_blank=True, default="", max_length=20)
    on_demand = serializers.DecimalField(max_digits=18, decimal_places=6)
    currency = serializers.ChoiceField(choices=CURRENCIES)
    work_hours = serializers.FloatField()
    interval_hours = serializers.FloatField()
    checkpoint_hours = serializers.FloatField(default=1 / 60)
    restart_hours = serializers.FloatField(default=0.25)
    notice_hours = serializers.FloatField(default=defaults.value("spot.notice_seconds") / 3600)
    shares = serializers.ListField(
        child=serializers.FloatField(), required=False, default=list(bids.DEFAULT_SHARES), max_length=50
    )  # fmt: skip


class MoneyOutput(serializers.Serializer[Any]):
    amount = serializers.CharField()
    currency = serializers.CharField()


class RungOutput(serializers.Serializer[Any]):
    ceiling = MoneyOutput()
    share = serializers.FloatField()
    hours_bought = serializers.FloatField()
    mean_price = MoneyOutput(allow_null=True)
    cost = MoneyOutput()
    interruptions = serializers.IntegerField()
    work_done_hours = serializers.FloatField()
    finish = serializers.DateTimeField(allow_null=True)
    saving = serializers.FloatField(allow_null=True)


class BidOutput(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    hours = serializers.FloatField()
    suggested = MoneyOutput()
    rungs = RungOutput(many=True)


class BidView(APIView):
    """What each ceiling (a share of the on-demand price) would have bought over a price history. Nothing is stored."""

    parser_classes = (MultiPartParser,)

    @extend_schema(request={"multipart/form-data": BidInput}, responses=BidOutput)
    def post(self, request: Request) -> Response:
        data = checked(BidInput(data=request.data))
        times = (
            "work_hours",
            "interval_hours",
            "checkpoint_hours",
            "restart_hours",
            "notice_hours",
        )
        found = bid_ladder(
            data["file"].read(),
            job=BidJob(**{name: data[name] for name in times}),
            on_demand=Money(data["on_demand"], data["currency"]),
            series=data["series"], encoding=data["encoding"], shares=data["shares"],
        )  # fmt: skip
        return Response(
            {
                "start": found.prices.start.isoformat(),
                "hours": found.prices.end_hour,
                "suggested": money_json(found.suggested),
                "rungs": [
                    {
                        "ceiling": money_json(one.ceiling),
                        "share": one.share_of_on_demand,
                        "hours_bought": one.hours_bought,
                        "mean_price": money_json(one.mean_price),
                        "cost": money_json(one.cost),
                        "interruptions": one.interruptions,
                        "work_done_hours": one.work_done,
                        "finish": None if one.finish is None else one.finish.isoformat(),
                        "saving": one.saving,
                    }
                    for one in found.rungs
                ],
            }
        )
