"""API: freeze a review's figures; make an RFQ of a decision."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.http import api_user
from planning.api.follow_ups import seen_action
from planning.api.requests import checked
from planning.api.reviews import SnapshotSerializer, visible
from planning.models import CapacityRequest
from planning.models.reviews import ReviewSnapshot
from procurement.api import serializers as s
from procurement.api.views import shown
from procurement.services.follow_ups import file_rfq
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


class FileRfqInput(serializers.Serializer[Any]):
    """What is left out is taken from the decision."""

    requests = serializers.ListField(
        child=serializers.IntegerField(), allow_empty=False, required=False
    )
    deadline = serializers.DateTimeField(required=False)


class ActionRfq(APIView):
    """Draft the RFQ that a decision asks for."""

    @extend_schema(request=FileRfqInput, responses={201: s.RfqSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        user = api_user(request)
        action = seen_action(request, pk)
        data = checked(FileRfqInput(data=request.data))
        if "requests" in data:
            # A request of a team that the caller does not see does not exist for them.
            seen = CapacityRequest.objects.visible_to(user).filter(pk__in=data.pop("requests"))
            data["request_ids"] = list(seen.values_list("pk", flat=True))
        return shown(request, file_rfq(action_id=action.pk, by=user, **data), 201)
