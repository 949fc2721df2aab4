"""Approvals, stand-ins and policies over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent
from core.errors import InputError
from core.http import api_user
from core.messages import msg
from core.models import User
from planning.api.requests import checked
from planning.api.serializers import (
    DecideInput,
    DelegateInput,
    DelegationSerializer,
    LimitInput,
    LimitSerializer,
    PolicyEditInput,
    PolicySerializer,
    PresetInput,
    StepSerializer,
    WaitingSerializer,
)
from planning.models import ApprovalLimit, ApprovalPolicy, ApprovalStep, CapacityRequest, Delegation
from planning.models.approvals import Standing
from planning.selectors.approvals import inbox
from planning.services import approvals
from planning.services.limits import set_limit
from planning.services.policy_edit import edit_policy
from planning.services.policy_presets import load_policy
from planning.services.policy_versions import confirm_policy, decline_policy
from planning.waiting import waiting


class ApprovalList(APIView):
    """Steps that wait for the caller."""

    @extend_schema(responses=StepSerializer(many=True))
    def get(self, request: Request) -> Response:
        steps = [item.step for item in inbox(api_user(request))]
        return Response(StepSerializer(steps, many=True).data)


class WaitingList(APIView):
    """What the caller can do now besides voting on requests: decisions, and steps of buying and proving."""

    @extend_schema(responses=WaitingSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(WaitingSerializer(waiting(api_user(request)), many=True).data)


class ApprovalDecide(APIView):
    """Approve, return or reject a step, sending back the hash of what was read."""

    @extend_schema(request=DecideInput, responses=StepSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        user = api_user(request)
        get_object_or_404(
            ApprovalStep,
            pk=pk,
            revision__request__in=CapacityRequest.objects.visible_to(user).values("pk"),
        )
        data = checked(DecideInput(data=request.data))
        return Response(StepSerializer(approvals.decide(step_id=pk, by=user, **data)).data)


class DelegationList(ListAPIView[Delegation]):
    """Delegations the caller gave or holds; POST gives one."""

    serializer_class = DelegationSerializer
    queryset = Delegation.objects.none()
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[Delegation]:
        user = api_user(self.request)
        return Delegation.objects.filter(Q(principal=user) | Q(delegate=user)).select_related(
            "principal", "delegate"
        )

    @extend_schema(request=DelegateInput, responses={201: DelegationSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(DelegateInput(data=request.data))
        email = data.pop("delegate").lower()
        person = User.objects.filter(email=email, is_active=True).first()
        if person is None:
            raise InputError("delegate", msg("Choose another active person"), value=email)
        user = api_user(request)
        row = approvals.delegate(principal=user, delegate=person, by=user, **data)
        return Response(DelegationSerializer(row).data, status=201)


class DelegationRevoke(APIView):
    """Take the authority back."""

    @extend_schema(request=None, responses=DelegationSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        user = api_user(request)
        get_object_or_404(Delegation, Q(principal=user) | Q(delegate=user), pk=pk)
        row = approvals.revoke_delegation(delegation_id=pk, by=user)
        return Response(DelegationSerializer(row).data)


class PolicyList(ListAPIView[ApprovalPolicy]):
    """Policies, the one in force first; POST puts a preset in force (administrator). 202: it waits for a second one."""

    serializer_class = PolicySerializer
    queryset = ApprovalPolicy.objects.select_related("loaded_by", "decided_by").prefetch_related(
        "rules__team"
    )
    filter_backends: list[Any] = []

    @extend_schema(request=PresetInput, responses={200: PolicySerializer, 202: PolicySerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(PresetInput(data=request.data))
        return _version(load_policy(preset=data["preset"], by=api_user(request)), status=200)


class PolicyEdit(APIView):
    """Put a new version of the rules in force (administrator). 202: it waits for a second one."""

    @extend_schema(
        request=PolicyEditInput, responses={201: PolicySerializer, 202: PolicySerializer}
    )
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(PolicyEditInput(data=request.data))
        policy = edit_policy(
            rules=data["rules"], options=data.get("options", {}), note=data["note"],
            seen=data["seen"], by=api_user(request),
        )  # fmt: skip
        return _version(policy, status=201)


def _version(policy: ApprovalPolicy, *, status: int) -> Response:
    waits = policy.standing == Standing.WAITING
    return Response(PolicySerializer(policy).data, status=202 if waits else status)


class PolicyStep(APIView):
    """confirm: a second administrator puts the version that waits in force; decline: it is dropped."""

    @extend_schema(operation_id="v1_policies_step", request=None, responses=PolicySerializer)
    @idempotent
    def post(self, request: Request, pk: int, step: str) -> Response:
        take = {"confirm": confirm_policy, "decline": decline_policy}.get(step)
        if take is None:
            raise NotFound
        get_object_or_404(ApprovalPolicy, pk=pk)
        return Response(PolicySerializer(take(policy_id=pk, by=api_user(request))).data)


class LimitList(ListAPIView[ApprovalLimit]):
    """Personal limits; POST sets or lifts one (administrator, not for oneself)."""

    serializer_class = LimitSerializer
    queryset = ApprovalLimit.objects.select_related("user").order_by("user__email")
    filter_backends: list[Any] = []

    @extend_schema(request=LimitInput, responses={200: LimitSerializer, 204: None})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(LimitInput(data=request.data))
        person = User.objects.filter(email=data.pop("user").lower(), is_active=True).first()
        if person is None:
            raise InputError("user", msg("Choose another active person"))
        limit = set_limit(user=person, by=api_user(request), **data)
        return Response(status=204) if limit is None else Response(LimitSerializer(limit).data)
