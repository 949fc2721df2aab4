"""Telemetry over the API: sources, loads, pushes by token, and what the fleet did."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.api import translated
from core.drf import idempotent, seen_version
from core.http import api_user
from core.models import Team
from core.organisation import organisation, quarter_at
from core.quarters import Quarter
from planning import telemetry_policies as may
from planning.api.requests import checked
from planning.models.requests import visible_teams
from planning.models.telemetry import Ingestion, TelemetrySource
from planning.selectors.telemetry import fleet
from planning.services import bills
from planning.services import telemetry_sources as sources


class SourceSerializer(serializers.ModelSerializer[TelemetrySource]):
    team: serializers.SlugRelatedField[Team] = serializers.SlugRelatedField(
        slug_field="slug",
        queryset=Team.objects.filter(active=True),
        allow_null=True,
        required=False,
    )

    class Meta:
        model = TelemetrySource
        fields = ["id", "version", "pulled_until", *sources.FIELDS]
        read_only_fields = ["id", "version", "pulled_until"]


class LoadSerializer(serializers.ModelSerializer[Ingestion]):
    problems = serializers.SerializerMethodField()

    class Meta:
        model = Ingestion
        fields = [
            "id", "status", "sha256", "read", "refused", "changed", "unchanged", "too_late", "first_at", "last_at",
            "problems", "started_at", "finished_at",
        ]  # fmt: skip

    def get_problems(self, load: Ingestion) -> list[str]:
        return [translated(problem) for problem in load.problems]


class FileSerializer(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)


class PushSerializer(serializers.Serializer[Any]):
    """Samples: card, at (ISO 8601 with zone) and any of utilization, sm_activity, tensor_activity, memory, power."""

    samples: Any = serializers.ListField(child=serializers.DictField(), allow_empty=False)


def visible(request: Request, pk: int) -> TelemetrySource:
    """The source, or 404 for those who may not see it."""
    if not may.can_see_sources(api_user(request)):
        raise Http404
    return get_object_or_404(TelemetrySource.objects.select_related("team"), pk=pk)


class SourceList(ListAPIView[TelemetrySource]):
    """Sources; POST connects one."""

    serializer_class = SourceSerializer
    queryset = TelemetrySource.objects.none()

    def get_queryset(self) -> QuerySet[TelemetrySource]:
        if not may.can_see_sources(api_user(self.request)):
            raise Http404
        return TelemetrySource.objects.select_related("team")

    @extend_schema(request=SourceSerializer, responses={201: SourceSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        self.get_queryset()
        data = checked(SourceSerializer(data=request.data))
        source = sources.create_source(by=api_user(request), **data)
        return Response(SourceSerializer(source).data, status=201)


class SourceDetail(APIView):
    """One source; PATCH changes it."""

    @extend_schema(responses=SourceSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(SourceSerializer(visible(request, pk)).data)

    @extend_schema(request=SourceSerializer, responses=SourceSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        source = visible(request, pk)
        data = checked(SourceSerializer(source, data=request.data, partial=True))
        changed = sources.update_source(
            source_id=source.pk, by=api_user(request), seen_version=seen_version(request), **data
        )
        return Response(SourceSerializer(changed).data)


class LoadList(ListAPIView[Ingestion]):
    """Loads of a source, newest first; POST brings a file (multipart). 200: it was given before; its load is told."""

    serializer_class = LoadSerializer
    queryset = Ingestion.objects.none()

    def get_queryset(self) -> QuerySet[Ingestion]:
        return visible(self.request, self.kwargs["pk"]).ingestions.all()

    @extend_schema(
        request={"multipart/form-data": FileSerializer},
        responses={200: LoadSerializer, 202: LoadSerializer},
    )
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        source = visible(request, pk)
        data = checked(FileSerializer(data=request.data))
        load, is_new = sources.receive_file(
            source_id=source.pk, upload=data["file"], by=api_user(request)
        )
        return Response(LoadSerializer(load).data, status=202 if is_new else 200)


class SourcePull(APIView):
    """Ask a Prometheus source now."""

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request, pk: int) -> Response:
        sources.request_pull(source_id=visible(request, pk).pk, by=api_user(request))
        return Response(status=202)


class SourceToken(APIView):
    """A new push token; the answer is the only place where it is shown."""

    @extend_schema(request=None, responses={201: OpenApiTypes.OBJECT})
    def post(self, request: Request, pk: int) -> Response:
        token = sources.issue_token(source_id=visible(request, pk).pk, by=api_user(request))
        return Response({"token": token}, status=201)


class SourcePostBill(APIView):
    """Post the bill's lines to the ledger."""

    @extend_schema(request=None, responses=OpenApiTypes.OBJECT)
    def post(self, request: Request, pk: int) -> Response:
        posted, left = bills.post_bill(source_id=visible(request, pk).pk, by=api_user(request))
        problems = [translated(problem.to_json()) for problem in left]
        return Response({"posted": posted, "problems": problems})


class Push(APIView):
    """Samples from a collector: `Authorization: Source TOKEN`. Sending the same again changes nothing."""

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []

    @extend_schema(request=PushSerializer, responses=LoadSerializer, auth=[])
    def post(self, request: Request) -> Response:
        word, _, token = request.headers.get("Authorization", "").partition(" ")
        source = sources.source_of_token(token.strip()) if word == "Source" else None
        if source is None:
            raise AuthenticationFailed
        data = checked(PushSerializer(data=request.data))
        return Response(LoadSerializer(sources.push(source=source, items=data["samples"])).data)

    def get_authenticate_header(self, request: Request) -> str:
        return "Source"


class FleetView(APIView):
    """What cards did in a quarter, for the teams the caller may see."""

    @extend_schema(
        parameters=[OpenApiParameter("quarter", str), OpenApiParameter("team", str)],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request) -> Response:
        org = organisation()
        text = request.query_params.get("quarter", "")
        try:
            quarter = Quarter.parse(text, org.fiscal_start_month) if text else quarter_at(org=org)
        except ValueError as error:
            raise Http404 from error
        mine = visible_teams(api_user(request))
        chosen = None if mine is None else sorted(mine)
        if slug := request.query_params.get("team"):
            team = get_object_or_404(Team, slug=slug)
            if not may.can_see_fleet(api_user(request), team):
                raise Http404
            chosen = [team.pk]
        found = fleet(first=quarter.start, last=quarter.end, organisation=org, teams=chosen)
        return Response(
            {
                "quarter": str(quarter),
                "pools": [{**asdict(pool), "use": asdict(pool.use)} for pool in found.pools],
                "total": asdict(found.total),
                "idle_owned": found.idle_owned if found.pools else None,
                "days": [
                    {"day": day.isoformat(), "utilization": use, "memory": memory}
                    for day, use, memory in found.days
                ],
                "queues": {team: asdict(queue) for team, queue in found.queues.items()},
                "spent": str(found.spent) if found.spent else None,
                "cost_per_useful_hour": str(found.cost_per_useful_hour)
                if found.cost_per_useful_hour
                else None,
                "holes": [translated(hole.to_json()) for hole in found.holes],
            }
        )
