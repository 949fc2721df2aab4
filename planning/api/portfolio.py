"""API of the portfolio; the same selector as the page."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.http import api_user
from core.organisation import today
from planning import portfolio_tables
from planning.selectors.placement import placed
from planning.selectors.portfolio import portfolio
from planning.services.purchase_tax import purchase_tax
from planning.services.snapshots import snapshot


class PortfolioView(APIView):
    """Requests of the caller's teams pooled by accelerator, against what is owned and idle."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        return Response(portfolio_tables.as_json(portfolio(api_user(request))))


class PlacementView(APIView):
    """Where the pooled requests would run cheapest, month by month."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        return Response(
            portfolio_tables.placement_json(
                placed(api_user(request), snapshot(today()), purchase_tax())
            )
        )
