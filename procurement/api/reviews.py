"""API: freeze a review's figures."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.http import api_user
from planning.api.reviews import SnapshotSerializer, visible
from planning.models.reviews import ReviewSnapshot
from procurement.services.reviews import freeze_review


class FreezeSerializer(serializers.Serializer[ReviewSnapshot]):
    reason = serializers.CharField(required=False, default="", allow_blank=True, max_length=300)


class ReviewFreeze(APIView):
    """Freeze the figures as the next snapshot; both documents are queued."""

    @extend_schema(request=FreezeSerializer, responses={201: SnapshotSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        body = FreezeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        snapshot = freeze_review(
            review_id=visible(request, pk).pk,
            by=api_user(request),
            reason=body.validated_data["reason"],
            seen_version=seen_version(request),
        )
        return Response(SnapshotSerializer(snapshot).data, status=201)
