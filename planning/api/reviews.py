"""API of capacity reviews: the same services and policies as the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.files import download
from core.http import api_user
from core.models import User
from core.whole import whole
from planning.models.reviews import CapacityReview, ReviewReport, ReviewSnapshot
from planning.review_rows import frozen_rows
from planning.selectors.reviews import visible_reviews
from planning.services import reviews


class ReportSerializer(serializers.ModelSerializer[ReviewReport]):
    sha256 = serializers.CharField(source="file.sha256", default=None, read_only=True)

    class Meta:
        model = ReviewReport
        fields = ["id", "language", "template_version", "job", "made_at", "sha256"]


class SnapshotSerializer(serializers.ModelSerializer[ReviewSnapshot]):
    reports = ReportSerializer(many=True, read_only=True)

    class Meta:
        model = ReviewSnapshot
        fields = ["number", "as_of", "data_hash", "reason", "data", "reports"]


class ReviewSerializer(serializers.ModelSerializer[CapacityReview]):
    quarter = serializers.CharField(source="__str__", read_only=True)
    team = serializers.SlugField(source="team.slug", default=None, read_only=True)

    class Meta:
        model = CapacityReview
        fields = [
            "id", "quarter", "team", "meeting_on", "agenda", "cancelled_at", "cancel_reason", "status", "version",
            "minutes",
        ]  # fmt: skip


class ReviewDetailSerializer(ReviewSerializer):
    snapshots = SnapshotSerializer(many=True, read_only=True)
    participants: serializers.SlugRelatedField[User] = serializers.SlugRelatedField(
        slug_field="email", many=True, read_only=True
    )

    class Meta(ReviewSerializer.Meta):
        fields = [*ReviewSerializer.Meta.fields, "participants", "snapshots"]


class CloseSerializer(serializers.Serializer[CapacityReview]):
    minutes = serializers.CharField()


def visible(request: Request, pk: int) -> CapacityReview:
    """The review, or 404 for those who may not see it."""
    return get_object_or_404(visible_reviews(api_user(request)), pk=pk)


class ReviewList(ListAPIView[CapacityReview]):
    """Reviews, newest first."""

    serializer_class = ReviewSerializer
    queryset = CapacityReview.objects.none()

    def get_queryset(self) -> QuerySet[CapacityReview]:
        return visible_reviews(api_user(self.request))


class ReviewDetail(RetrieveAPIView[CapacityReview]):
    """One review with its snapshots and documents."""

    serializer_class = ReviewDetailSerializer
    queryset = CapacityReview.objects.none()

    def get_queryset(self) -> QuerySet[CapacityReview]:
        return visible_reviews(api_user(self.request)).prefetch_related("snapshots__reports__file")


class RowsSerializer(serializers.Serializer[Any]):
    """One list of a frozen version."""

    version = serializers.IntegerField()
    name = serializers.CharField()
    rows = serializers.ListField(child=serializers.DictField())


class ReviewRows(APIView):
    """The frozen rows behind a figure. ?version= (the newest when left out); any field of the list narrows them."""

    @extend_schema(parameters=[OpenApiParameter("version", int)], responses=RowsSerializer)
    def get(self, request: Request, pk: int, name: str) -> Response:
        snapshots = visible(request, pk).snapshots.all()
        asked = request.query_params.get("version")
        number = whole(asked) if asked else None
        snapshot = snapshots.filter(number=number or 0).first() if asked else snapshots.first()
        if snapshot is None:
            raise NotFound
        try:
            rows = frozen_rows(snapshot.data, name, request.query_params.dict())
        except KeyError:
            raise NotFound from None
        return Response({"version": snapshot.number, "name": name, "rows": rows})


class AskSerializer(serializers.Serializer[ReviewReport]):
    number = serializers.IntegerField(min_value=1)
    language = serializers.CharField(max_length=10)


class ReviewReports(APIView):
    """Have a frozen version drawn: en, zh-hans, or both in one document."""

    @extend_schema(request=AskSerializer, responses={201: ReportSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        body = AskSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        report = reviews.ask_for_report(
            review_id=visible(request, pk).pk, by=api_user(request), **body.validated_data
        )
        return Response(ReportSerializer(report).data, status=201)


class ReviewReportFile(APIView):
    """The PDF of one snapshot in one language."""

    @extend_schema(responses={(200, "application/pdf"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int, report_pk: int) -> FileResponse:
        report = get_object_or_404(
            ReviewReport.objects.select_related("file"),
            pk=report_pk,
            snapshot__review=visible(request, pk),
        )
        if report.file is None:
            raise NotFound
        return download(report.file)


class ReviewOpen(APIView):
    """Start the meeting; the caller chairs it."""

    @extend_schema(request=None, responses=ReviewSerializer)
    def post(self, request: Request, pk: int) -> Response:
        review = reviews.open_session(
            review_id=visible(request, pk).pk,
            by=api_user(request),
            seen_version=seen_version(request),
        )
        return Response(ReviewSerializer(review).data)


class ReviewClose(APIView):
    """End the meeting with its minutes."""

    @extend_schema(request=CloseSerializer, responses=ReviewSerializer)
    def post(self, request: Request, pk: int) -> Response:
        body = CloseSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        review = reviews.close_review(
            review_id=visible(request, pk).pk,
            minutes=body.validated_data["minutes"],
            by=api_user(request),
            seen_version=seen_version(request),
        )
        return Response(ReviewSerializer(review).data)
