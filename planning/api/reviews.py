"""API of capacity reviews: the same services and policies as the pages."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import FileResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import seen_version
from core.files import download
from core.http import api_user
from core.models import User
from planning.models.reviews import CapacityReview, ReviewReport, ReviewSnapshot
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
