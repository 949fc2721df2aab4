"""Promised against measured over the API: of a delivery, and of what one acceptance took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.http import api_user
from procurement import policies
from procurement.api.views import visible
from procurement.models import Delivery
from procurement.selectors.promised import promised_against_measured, result_json, rule


def _told(request: Request, delivery: Delivery, assets: Iterable[int] | None = None) -> Response:
    """The amounts are null for callers who do not read the order's prices."""
    with_money = policies.can_read_order_prices(api_user(request), delivery.order)
    results = promised_against_measured(delivery, assets=assets)
    body: dict[str, Any] = {
        "rule": rule().render(gettext),
        "promises": [result_json(result, with_money=with_money) for result in results],
    }
    return Response(body)


class DeliveryPerformance(APIView):
    """Each promised figure beside what files show of it, unit by unit: shortfall as a share and in money."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Response:
        return _told(request, visible(request, "delivery", pk))


class AcceptancePerformance(APIView):
    """As of the delivery, for the units that one acceptance takes."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Response:
        acceptance = visible(request, "acceptance", pk)
        units = acceptance.units.filter(included=True).values_list("asset_id", "asset__parent_id")
        taken = [pk for pair in units for pk in pair if pk is not None]
        return _told(request, acceptance.delivery, taken)
