"""The capacity calendar and bookings over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.http import api_user
from planning.api.requests import answer, checked, visible
from planning.api.serializers import RequestDetailSerializer
from planning.models import Allocation
from planning.selectors.capacity import Place, calendar
from planning.services import allocations


class MonthSerializer(serializers.Serializer[Any]):
    first = serializers.DateField()
    owned = serializers.IntegerField()
    reserved = serializers.IntegerField()
    on_order = serializers.IntegerField()
    buffer = serializers.IntegerField()
    usable = serializers.IntegerField()
    running = serializers.FloatField()
    approved = serializers.FloatField()
    requested = serializers.FloatField()
    mean = serializers.FloatField()
    peak = serializers.FloatField()
    short = serializers.IntegerField()


class WindowSerializer(serializers.Serializer[Any]):
    first = serializers.DateField()
    last = serializers.DateField()
    missing = serializers.IntegerField()
    sure = serializers.BooleanField()
    order_by = serializers.DateField(allow_null=True)


class PoolSerializer(serializers.Serializer[Any]):
    accelerator = serializers.CharField()
    lead_days = serializers.IntegerField(allow_null=True)
    undated = serializers.IntegerField()
    months = MonthSerializer(many=True)
    windows = WindowSerializer(many=True)


class PlaceSerializer(serializers.Serializer[Any]):
    """A site or region; name "": nobody told a place. `short` by accelerator, on the worst day."""

    name = serializers.CharField()
    short = serializers.SerializerMethodField()

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_short(self, place: Place) -> dict[str, int]:
        return dict(place.short)


class CalendarSerializer(serializers.Serializer[Any]):
    """`whole` false: the caller's own teams alone, without supply. `place` null: all places."""

    place = serializers.CharField(allow_null=True)
    places = PlaceSerializer(many=True)

    first = serializers.DateField()
    whole = serializers.BooleanField()
    pools = PoolSerializer(many=True)


class AllocationSerializer(serializers.ModelSerializer[Allocation]):
    accelerator = serializers.CharField(source="pool.accelerator_slug", read_only=True)
    team = serializers.CharField(source="team.slug", read_only=True)

    class Meta:
        model = Allocation
        fields = [
            "id",
            "accelerator",
            "request",
            "team",
            "cards",
            "first_day",
            "last_day",
            "status",
            "version",
        ]


class BookInput(serializers.Serializer[Any]):
    cards = serializers.IntegerField()
    first_day = serializers.DateField()
    last_day = serializers.DateField()
    accelerator = serializers.CharField(required=False, allow_blank=True, default="")


class MoveInput(serializers.Serializer[Any]):
    cards = serializers.IntegerField(required=False)
    first_day = serializers.DateField(required=False)
    last_day = serializers.DateField(required=False)
    version = serializers.IntegerField(required=False)


class Calendar(APIView):
    """Supply and demand by accelerator and month, of all places or of `place`."""

    @extend_schema(parameters=[OpenApiParameter("place", str)], responses=CalendarSerializer)
    def get(self, request: Request) -> Response:
        found = calendar(api_user(request), place=request.query_params.get("place"))
        return Response(CalendarSerializer(found).data)


class AllocationList(ListAPIView[Allocation]):
    """Bookings of the teams the caller may see."""

    serializer_class = AllocationSerializer
    queryset = Allocation.objects.none()
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Allocation]:
        rows = Allocation.objects.visible_to(api_user(self.request))
        return rows.select_related("pool", "team")


class Book(APIView):
    """Book cards for an approved request."""

    @extend_schema(request=BookInput, responses={201: AllocationSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(BookInput(data=request.data))
        row = allocations.book(request_id=pk, by=api_user(request), **data)
        return Response(AllocationSerializer(row).data, status=201)


def _allocation(request: Request, pk: int) -> Allocation:
    return get_object_or_404(Allocation.objects.visible_to(api_user(request)), pk=pk)


class Move(APIView):
    """Other days or another number of cards."""

    @extend_schema(request=MoveInput, responses=AllocationSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _allocation(request, pk)
        data = {**checked(MoveInput(data=request.data)), "version": seen_version(request)}
        row = allocations.move_allocation(allocation_id=pk, by=api_user(request), **data)
        return Response(AllocationSerializer(row).data)


class Release(APIView):
    """Give cards back."""

    @extend_schema(request=None, responses=AllocationSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _allocation(request, pk)
        row = allocations.release_allocation(
            allocation_id=pk, by=api_user(request), version=seen_version(request)
        )
        return Response(AllocationSerializer(row).data)


class Renew(APIView):
    """A draft for the time after the end."""

    @extend_schema(request=None, responses={201: RequestDetailSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _allocation(request, pk)
        draft = allocations.renew(allocation_id=pk, by=api_user(request))
        return answer(request, draft.pk, 201)
