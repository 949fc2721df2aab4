"""Schedules of capacity reviews over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.http import api_user
from planning.api.requests import checked, team_named
from planning.models.review_schedules import ReviewSchedule
from planning.review_policies import can_see_reviews
from planning.services import review_schedules


class ScheduleSerializer(serializers.ModelSerializer[ReviewSchedule]):
    team = serializers.SlugField(source="team.slug", default=None, read_only=True)

    class Meta:
        model = ReviewSchedule
        fields = [
            "id", "team", "active", "start_month", "meeting_after_days", "at_hour", "version",
        ]  # fmt: skip
        read_only_fields = ["id", "version"]


class NewScheduleSerializer(ScheduleSerializer):
    team = serializers.SlugField()


def _seen(request: Request) -> QuerySet[ReviewSchedule]:
    if not can_see_reviews(api_user(request)):
        raise Http404
    return ReviewSchedule.objects.select_related("team")


class ScheduleList(ListAPIView[ReviewSchedule]):
    """Who holds reviews; POST lets a team hold its own."""

    serializer_class = ScheduleSerializer
    queryset = ReviewSchedule.objects.none()

    def get_queryset(self) -> QuerySet[ReviewSchedule]:
        return _seen(self.request)

    @extend_schema(request=NewScheduleSerializer, responses={201: ScheduleSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        _seen(request)
        data = checked(NewScheduleSerializer(data=request.data))
        row = review_schedules.add_schedule(
            by=api_user(request), team=team_named(data.pop("team")), **data
        )
        return Response(ScheduleSerializer(row).data, status=201)


class ScheduleDetail(APIView):
    """One schedule; PATCH changes what it names."""

    @extend_schema(responses=ScheduleSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(ScheduleSerializer(get_object_or_404(_seen(request), pk=pk)).data)

    @extend_schema(request=ScheduleSerializer, responses=ScheduleSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        row = get_object_or_404(_seen(request), pk=pk)
        data: dict[str, Any] = checked(ScheduleSerializer(row, data=request.data, partial=True))
        data.pop("team", None)
        changed = review_schedules.set_schedule(
            schedule_id=pk, by=api_user(request), seen_version=seen_version(request), **data
        )
        return Response(ScheduleSerializer(changed).data)
