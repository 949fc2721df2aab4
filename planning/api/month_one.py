"""Looks back after four weeks over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import seen_version
from core.http import api_user
from planning import telemetry_policies as may
from planning.api.requests import checked
from planning.models.month_one import MonthOneReview, ReviewRules
from planning.services import month_one


class MonthOneSerializer(serializers.ModelSerializer[MonthOneReview]):
    request = serializers.CharField(source="request.reference", read_only=True)
    team = serializers.CharField(source="request.team.slug", read_only=True)

    class Meta:
        model = MonthOneReview
        fields = [
            "id", "request", "team", "status", "version", "finding", "figures", "answer", "made_at", "done_at",
        ]  # fmt: skip


class AnswerSerializer(serializers.Serializer[Any]):
    answer = serializers.CharField()


class RulesSerializer(serializers.ModelSerializer[ReviewRules]):
    class Meta:
        model = ReviewRules
        fields = list(month_one.RULE_FIELDS)


def visible(request: Request) -> QuerySet[MonthOneReview]:
    return MonthOneReview.objects.visible_to(api_user(request)).select_related("request__team")


class MonthOneList(ListAPIView[MonthOneReview]):
    """Looks back, newest first."""

    serializer_class = MonthOneSerializer
    queryset = MonthOneReview.objects.none()

    def get_queryset(self) -> QuerySet[MonthOneReview]:
        return visible(self.request)


class MonthOneDetail(RetrieveAPIView[MonthOneReview]):
    """One look back."""

    serializer_class = MonthOneSerializer
    queryset = MonthOneReview.objects.none()

    def get_queryset(self) -> QuerySet[MonthOneReview]:
        return visible(self.request)


class MonthOneClose(APIView):
    """The owner, or operations, says what was done."""

    @extend_schema(request=AnswerSerializer, responses=MonthOneSerializer)
    def post(self, request: Request, pk: int) -> Response:
        review = get_object_or_404(visible(request), pk=pk)
        data = checked(AnswerSerializer(data=request.data))
        done = month_one.close(
            review_id=review.pk, by=api_user(request), seen_version=seen_version(request), **data
        )
        return Response(MonthOneSerializer(done).data)


class RulesView(APIView):
    """The rules of reviews; PATCH changes them."""

    @extend_schema(responses=RulesSerializer)
    def get(self, request: Request) -> Response:
        if not may.can_see_sources(api_user(request)):
            raise Http404
        return Response(RulesSerializer(month_one.rules()).data)

    @extend_schema(request=RulesSerializer, responses=RulesSerializer)
    def patch(self, request: Request) -> Response:
        if not may.can_see_sources(api_user(request)):
            raise Http404
        data = checked(RulesSerializer(month_one.rules(), data=request.data, partial=True))
        return Response(RulesSerializer(month_one.set_rules(by=api_user(request), **data)).data)
