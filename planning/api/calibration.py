"""Calibration over the API: outcomes, versions, what is in force."""

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

from core.drf import idempotent
from core.http import api_user
from core.models import Team
from planning.api.requests import checked
from planning.models.calibration import CalibrationVersion, MeasuredOutcome
from planning.services import calibration


class OutcomeSerializer(serializers.ModelSerializer[MeasuredOutcome]):
    team: serializers.SlugRelatedField[Team] = serializers.SlugRelatedField(
        slug_field="slug",
        queryset=Team.objects.filter(active=True),
        allow_null=True,
        required=False,
    )
    within = serializers.BooleanField(read_only=True, allow_null=True)

    class Meta:
        model = MeasuredOutcome
        fields = [
            "id", "reference", "kind", "accelerator_slug", "work", "team", "vendor", "unit", "estimated", "low", "high",
            "measured", "factor", "measured_at", "within", "left_out",
        ]  # fmt: skip
        read_only_fields = ["id", "vendor", "left_out"]
        extra_kwargs: dict[str, Any] = {
            "reference": {"validators": []}
        }  # the same again is the same row


class VersionSerializer(serializers.ModelSerializer[CalibrationVersion]):
    class Meta:
        model = CalibrationVersion
        fields = ["number", "made_at", "outcomes", "active", "chosen", "result"]


class ReasonSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(allow_blank=True, max_length=300)


class ChooseSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(allow_null=True)


class OutcomeList(ListAPIView[MeasuredOutcome]):
    """Outcomes the caller may see; POST records one."""

    serializer_class = OutcomeSerializer
    queryset = MeasuredOutcome.objects.none()

    def get_queryset(self) -> QuerySet[MeasuredOutcome]:
        return MeasuredOutcome.objects.visible_to(api_user(self.request)).select_related("team")

    @extend_schema(request=OutcomeSerializer, responses={201: OutcomeSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(OutcomeSerializer(data=request.data))
        row = calibration.record_outcome(by=api_user(request), **data)
        return Response(OutcomeSerializer(row).data, status=201)


class OutcomeLeaveOut(APIView):
    """Keep an outcome from teaching; an empty reason takes it in again."""

    @extend_schema(request=ReasonSerializer, responses=OutcomeSerializer)
    def post(self, request: Request, pk: int) -> Response:
        data = checked(ReasonSerializer(data=request.data))
        row = get_object_or_404(MeasuredOutcome.objects.visible_to(api_user(request)), pk=pk)
        row = calibration.leave_out(outcome_id=row.pk, by=api_user(request), **data)
        return Response(OutcomeSerializer(row).data)


class VersionList(ListAPIView[CalibrationVersion]):
    """Versions, newest first; POST learns from what is there now (204: nothing changed)."""

    serializer_class = VersionSerializer
    queryset = CalibrationVersion.objects.all()

    @extend_schema(request=None, responses={201: VersionSerializer, 204: None})
    @idempotent
    def post(self, request: Request) -> Response:
        version = calibration.learn(by=api_user(request))
        if version is None:
            return Response(status=204)
        return Response(VersionSerializer(version).data, status=201)


class VersionChoose(APIView):
    """Put a version in force; number null: the published efficiencies."""

    @extend_schema(request=ChooseSerializer, responses={200: VersionSerializer, 204: None})
    def post(self, request: Request) -> Response:
        number = checked(ChooseSerializer(data=request.data))["number"]
        if number is not None and not CalibrationVersion.objects.filter(number=number).exists():
            raise Http404
        version = calibration.choose_version(number=number, by=api_user(request))
        return (
            Response(status=204) if version is None else Response(VersionSerializer(version).data)
        )
