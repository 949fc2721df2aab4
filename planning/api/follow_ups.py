"""A decision of a review becomes a request or a transfer, over the API."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent
from core.http import api_user
from planning.api.budgets import visible as visible_budget
from planning.api.requests import checked, team_named
from planning.api.serializers import ChangeSerializer, RequestSerializer
from planning.models.review_work import ReviewAction
from planning.review_policies import can_see_action
from planning.services import follow_ups


class FileRequestInput(serializers.Serializer[Any]):
    """What is left out is taken from the recommendation for the decision's pool."""

    team = serializers.SlugField(required=False)
    accelerator = serializers.CharField(required=False, allow_blank=True, max_length=120)
    cards = serializers.IntegerField(required=False, min_value=1, max_value=100_000)
    need_by = serializers.DateField(required=False)


class FileTransferInput(serializers.Serializer[Any]):
    """What is left out is taken from the recommendation for the decision's pool."""

    giver = serializers.IntegerField(required=False)
    receiver = serializers.IntegerField(required=False)
    amount = serializers.DecimalField(18, 3, required=False)
    reason = serializers.CharField(required=False, allow_blank=True, max_length=300)


def seen_action(request: Request, pk: int) -> ReviewAction:
    """The decision, or 404 for those who may not see it."""
    action = get_object_or_404(ReviewAction, pk=pk)
    if not can_see_action(api_user(request), action):
        raise Http404
    return action


class ActionRequest(APIView):
    """Draft the request that a decision asks for."""

    @extend_schema(request=FileRequestInput, responses={201: RequestSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        action = seen_action(request, pk)
        data = checked(FileRequestInput(data=request.data))
        if "team" in data:
            data["team"] = team_named(data["team"])
        filed = follow_ups.file_request(action_id=action.pk, by=api_user(request), **data)
        return Response(RequestSerializer(filed).data, status=201)


class ActionTransfer(APIView):
    """Propose the transfer of budget that a decision asks for."""

    @extend_schema(request=FileTransferInput, responses={201: ChangeSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        action = seen_action(request, pk)
        data = checked(FileTransferInput(data=request.data))
        for name in ("giver", "receiver"):
            if name in data:
                data[name] = visible_budget(request, data[name])
        change = follow_ups.file_transfer(action_id=action.pk, by=api_user(request), **data)
        return Response(ChangeSerializer(change).data, status=201)
