"""Templates, splitting, merging and origins over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.http import api_user
from planning.api.requests import answer, checked, visible
from planning.api.serializers import RequestDetailSerializer, RequestSerializer
from planning.models import CapacityRequest, RequestTemplate
from planning.selectors.origins import origins
from planning.services import regroup, templates


class TemplateSerializer(serializers.ModelSerializer[RequestTemplate]):
    team: serializers.SlugRelatedField[Any] = serializers.SlugRelatedField(
        slug_field="slug", read_only=True
    )

    class Meta:
        model = RequestTemplate
        fields = [
            "id",
            "team",
            "name",
            "title",
            "kind",
            "workload",
            "terms",
            "lead_days",
            "made_from",
        ]


class TemplateInput(serializers.Serializer[Any]):
    request = serializers.IntegerField()
    name = serializers.CharField()


class TemplateUseInput(serializers.Serializer[Any]):
    need_by = serializers.DateField(required=False, allow_null=True, default=None)
    title = serializers.CharField(required=False, allow_blank=True, default="")


class SplitInput(serializers.Serializer[Any]):
    """Shares in per cent that sum to 100."""

    shares = serializers.ListField(child=serializers.DecimalField(6, 3))
    version = serializers.IntegerField(required=False)


class MergeInput(serializers.Serializer[Any]):
    requests = serializers.ListField(child=serializers.IntegerField())
    title = serializers.CharField(required=False, allow_blank=True, default="")


class OriginSerializer(serializers.Serializer[Any]):
    request = serializers.IntegerField(source="request.pk")
    reference = serializers.CharField(source="request.reference")
    relation = serializers.CharField()
    share = serializers.DecimalField(6, 3, allow_null=True)
    became = serializers.BooleanField()


class TemplateList(ListAPIView[RequestTemplate]):
    """Templates of the caller's teams; POST keeps the content of a request as one."""

    serializer_class = TemplateSerializer
    queryset = RequestTemplate.objects.none()
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[RequestTemplate]:
        rows = RequestTemplate.objects.visible_to(api_user(self.request)).in_use()
        return rows.select_related("team")

    @extend_schema(request=TemplateInput, responses={201: TemplateSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(TemplateInput(data=request.data))
        found = visible(request, data["request"])
        row = templates.save_template(request_id=found.pk, name=data["name"], by=api_user(request))
        return Response(TemplateSerializer(row).data, status=201)


def _template(request: Request, pk: int) -> RequestTemplate:
    return get_object_or_404(RequestTemplate.objects.visible_to(api_user(request)).in_use(), pk=pk)


class TemplateUse(APIView):
    """A draft from a template."""

    @extend_schema(request=TemplateUseInput, responses={201: RequestDetailSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _template(request, pk)
        data = checked(TemplateUseInput(data=request.data))
        draft = templates.draft_from_template(template_id=pk, by=api_user(request), **data)
        return answer(request, draft.pk, 201)


class TemplateRetire(APIView):
    """Take a template out of use."""

    @extend_schema(request=None, responses=TemplateSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _template(request, pk)
        row = templates.retire_template(template_id=pk, by=api_user(request))
        return Response(TemplateSerializer(row).data)


class RequestSplit(APIView):
    """Divide a draft into drafts by shares of its volume."""

    @extend_schema(request=SplitInput, responses={201: RequestSerializer(many=True)})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(SplitInput(data=request.data))
        parts = regroup.split_request(
            request_id=pk,
            shares=data["shares"],
            by=api_user(request),
            version=seen_version(request),
        )
        rows = CapacityRequest.objects.with_current().filter(pk__in=[part.pk for part in parts])
        return Response(RequestSerializer(rows.order_by("number"), many=True).data, status=201)


class RequestMerge(APIView):
    """Make one draft of several of the same team and kind."""

    @extend_schema(request=MergeInput, responses={201: RequestDetailSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(MergeInput(data=request.data))
        ids = [visible(request, pk).pk for pk in data["requests"]]
        merged = regroup.merge_requests(request_ids=ids, title=data["title"], by=api_user(request))
        return answer(request, merged.pk, 201)


class RequestOrigins(APIView):
    """From which requests this one came, and which it became."""

    @extend_schema(responses=OriginSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        found = visible(request, pk)
        readable = CapacityRequest.objects.visible_to(api_user(request))
        return Response(OriginSerializer(origins(found, readable), many=True).data)
