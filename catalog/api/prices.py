"""API of prices and exchange rates: dated rows are read and added, never changed."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from catalog import filters, selectors
from catalog.api import serializers
from catalog.models import LeaseOffer, OfferPrice, PriceImport, PriceRecord
from catalog.policies import can_import_prices
from catalog.services import prices
from catalog.services.leases import add_lease
from catalog.services.rates import add_rate
from core.drf import idempotent, seen_version
from core.http import api_user
from core.models import ExchangeRate
from core.policies import require


class OfferPriceList(ListAPIView[OfferPrice]):
    """The newest price of each offer; with `history=1` every price ever noted."""

    serializer_class = serializers.OfferPriceSerializer
    filterset_class = filters.OfferPriceFilter
    queryset = OfferPrice.objects.none()

    def get_queryset(self) -> QuerySet[OfferPrice]:
        rows = selectors.offer_prices(history=bool(self.request.query_params.get("history")))
        return rows

    @extend_schema(parameters=[OpenApiParameter("history", bool)])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        request=serializers.OfferPriceInput,
        responses={200: serializers.OfferPriceSerializer, 201: serializers.OfferPriceSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add one price. 200 without a body when the same price is held already."""
        given = serializers.OfferPriceInput(data=request.data)
        given.is_valid(raise_exception=True)
        return _added(
            request,
            PriceImport.Target.OFFERS,
            given.validated_data,
            serializers.OfferPriceSerializer,
        )


class HardwarePriceList(ListAPIView[PriceRecord]):
    """Prices of cards and servers, newest first."""

    serializer_class = serializers.HardwarePriceSerializer
    filterset_class = filters.HardwarePriceFilter
    queryset = PriceRecord.objects.none()

    def get_queryset(self) -> QuerySet[PriceRecord]:
        return selectors.hardware_prices()

    @extend_schema(
        request=serializers.HardwarePriceInput,
        responses={
            200: serializers.HardwarePriceSerializer,
            201: serializers.HardwarePriceSerializer,
        },
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Add one price. 200 without a body when the same price is held already."""
        given = serializers.HardwarePriceInput(data=request.data)
        given.is_valid(raise_exception=True)
        return _added(
            request,
            PriceImport.Target.HARDWARE,
            given.validated_data,
            serializers.HardwarePriceSerializer,
        )


class LeaseList(ListAPIView[LeaseOffer]):
    """Quotations of lessors, newest first; POST adds one (those who add prices)."""

    serializer_class = serializers.LeaseSerializer
    filterset_class = filters.LeaseFilter
    queryset = LeaseOffer.objects.none()

    def get_queryset(self) -> QuerySet[LeaseOffer]:
        return selectors.leases()

    @extend_schema(request=serializers.LeaseInput, responses={201: serializers.LeaseSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        given = serializers.LeaseInput(data=request.data)
        given.is_valid(raise_exception=True)
        row = add_lease(by=api_user(request), **given.validated_data)
        return Response(serializers.LeaseSerializer(row).data, status=201)


def _added(request: Request, target: str, values: dict[str, Any], output: Any) -> Response:
    cells = {name: "" if value is None else str(value) for name, value in values.items()}
    price, is_new = prices.add_price(target=target, cells=cells, by=api_user(request))
    return Response(output(price).data if is_new else None, status=201 if is_new else 200)


class RateList(ListAPIView[ExchangeRate]):
    """Exchange rates, newest first."""

    serializer_class = serializers.RateSerializer
    filterset_class = filters.RateFilter
    queryset = ExchangeRate.objects.order_by("-as_of", "base", "quote")

    @extend_schema(request=serializers.RateInput, responses={201: serializers.RateSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        """Add a dated rate (finance)."""
        given = serializers.RateInput(data=request.data)
        given.is_valid(raise_exception=True)
        row = add_rate(by=api_user(request), **given.validated_data)
        return Response(serializers.RateSerializer(row).data, status=201)


def _shown(row: PriceImport, status: int = 200) -> Response:
    context: dict[str, Any] = {}
    if row.status == PriceImport.Status.PREVIEW:
        preview = prices.preview(row)
        context["preview"] = preview
        context["rows"] = [
            {
                "line": fate.line,
                "fate": fate.fate,
                "message": fate.message.render(gettext),
                "cells": dict(fate.cells),
            }
            for fate in preview.fates
        ]
    return Response(serializers.PriceImportSerializer(row, context=context).data, status=status)


class PriceImportStart(APIView):
    """Upload a price file: nothing is priced yet, the answer says what would become of each row."""

    @extend_schema(
        request={"multipart/form-data": serializers.PriceImportInput},
        responses={201: serializers.PriceImportSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        given = serializers.PriceImportInput(data=request.data)
        given.is_valid(raise_exception=True)
        values = given.validated_data
        row = prices.start_import(
            target=values["target"],
            upload=values["file"],
            encoding=values["encoding"],
            by=api_user(request),
        )
        return _shown(row, status=201)


class PriceImportDetail(APIView):
    """One price file, as it would be applied now."""

    @extend_schema(responses=serializers.PriceImportSerializer)
    def get(self, request: Request, pk: int) -> Response:
        require(can_import_prices(api_user(request)))
        return _shown(get_object_or_404(PriceImport.objects.select_related("file"), pk=pk))


class PriceImportEncoding(APIView):
    """Say how the file is to be read."""

    @extend_schema(request=serializers.EncodingInput, responses=serializers.PriceImportSerializer)
    def post(self, request: Request, pk: int) -> Response:
        get_object_or_404(PriceImport, pk=pk)
        given = serializers.EncodingInput(data=request.data)
        given.is_valid(raise_exception=True)
        return _shown(prices.choose_encoding(pk=pk, by=api_user(request), **given.validated_data))


class PriceImportApply(APIView):
    """Add the new prices of a file. Once only."""

    @extend_schema(request=None, responses=serializers.PriceImportSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        get_object_or_404(PriceImport, pk=pk)
        return _shown(prices.apply_import(pk=pk, by=api_user(request), seen=seen_version(request)))


class PriceImportDiscard(APIView):
    """Put a file aside without using it."""

    @extend_schema(request=None, responses=serializers.PriceImportSerializer)
    def post(self, request: Request, pk: int) -> Response:
        get_object_or_404(PriceImport, pk=pk)
        return _shown(prices.discard_import(pk=pk, by=api_user(request)))
