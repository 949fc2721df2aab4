"""Requests over the API: the same services, policies and errors as the pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.errors import InputError
from core.http import api_user
from core.messages import msg
from core.models import Team
from core.money import Money
from planning.api.serializers import (
    ActualInput,
    ChoosePlanInput,
    CreateInput,
    EditInput,
    EntrySerializer,
    FulfilInput,
    RequestDetailSerializer,
    RequestSerializer,
    RevisionSerializer,
    StepInput,
)
from planning.filters import RequestFilter
from planning.models import CapacityRequest, RequestRevision
from planning.services import plans, requests, spending


def visible(request: Request, pk: int) -> CapacityRequest:
    """The request `pk`, or 404 outside the caller's teams."""
    return get_object_or_404(
        CapacityRequest.objects.visible_to(api_user(request)).with_current(), pk=pk
    )


def answer(request: Request, pk: int, status: int = 200) -> Response:
    found = CapacityRequest.objects.with_current().get(pk=pk)
    data = RequestDetailSerializer(found, context={"request": request}).data
    return Response(data, status=status, headers={"ETag": f'"{found.version}"'})


def team_named(slug: str) -> Team:
    """The team with this short name. Raises InputError."""
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        raise InputError("team", msg("There is no such team"), value=slug)
    return team


def checked(serializer: Any) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    data: dict[str, Any] = dict(serializer.validated_data)
    return data


class RequestList(ListAPIView[CapacityRequest]):
    """Requests the caller may see, newest first; POST files a draft."""

    serializer_class = RequestSerializer
    filterset_class = RequestFilter
    queryset = CapacityRequest.objects.none()

    def get_queryset(self) -> QuerySet[CapacityRequest]:
        return CapacityRequest.objects.visible_to(api_user(self.request)).with_current()

    @extend_schema(request=CreateInput, responses={201: RequestDetailSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(CreateInput(data=request.data))
        team = team_named(data.pop("team"))
        created = requests.create_request(team_id=team.pk, by=api_user(request), **data)
        return answer(request, created.pk, 201)


class RequestDetail(APIView):
    """One request; PATCH changes a draft."""

    @extend_schema(responses=RequestDetailSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return answer(request, visible(request, pk).pk)

    @extend_schema(request=EditInput, responses=RequestDetailSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(EditInput(data=request.data))
        data["version"] = seen_version(request)
        requests.update_draft(request_id=pk, by=api_user(request), **data)
        return answer(request, pk)


class RevisionList(ListAPIView[RequestRevision]):
    """Every revision of a request, newest first."""

    serializer_class = RevisionSerializer
    queryset = RequestRevision.objects.none()
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[RequestRevision]:
        return visible(self.request, self.kwargs["pk"]).revisions.select_related("plan")


# Steps that take a version and, some, a reason.
STEPS: dict[str, Callable[..., CapacityRequest]] = {
    "submit": requests.submit_request,
    "recall": requests.recall,
    "revise": requests.revise,
    "cancel": requests.cancel_request,
    "start-sourcing": requests.start_sourcing,
}
WITHOUT_REASON = frozenset({"submit", "start-sourcing"})


class RequestStep(APIView):
    """Take one step: submit, recall, revise, cancel, start-sourcing."""

    @extend_schema(
        operation_id="v1_requests_step", request=StepInput, responses=RequestDetailSerializer
    )
    @idempotent
    def post(self, request: Request, pk: int, step: str) -> Response:
        visible(request, pk)
        data = checked(StepInput(data=request.data))
        facts = {} if step in WITHOUT_REASON else {"reason": data["reason"]}
        if step == "submit":
            facts["use_reason"] = data["use_reason"]
        STEPS[step](request_id=pk, by=api_user(request), version=seen_version(request), **facts)
        return answer(request, pk)


class RequestCopy(APIView):
    """A new draft with the same content."""

    @extend_schema(request=None, responses={201: RequestDetailSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        return answer(request, requests.copy_request(request_id=pk, by=api_user(request)).pk, 201)


class RequestPlan(APIView):
    """Choose a plan of a finished study for the current revision."""

    @extend_schema(request=ChoosePlanInput, responses=RequestDetailSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        revision = visible(request, pk).current
        data = checked(ChoosePlanInput(data=request.data))
        if not revision.request.revisions.filter(studies=data["study"]).exists():
            raise InputError("study", msg("There is no such study"), value=data["study"])
        plans.choose_plan(
            revision_id=revision.pk,
            study_id=data["study"],
            plan_key=data["plan_key"],
            by=api_user(request),
            version=seen_version(request),
        )
        return answer(request, pk)


class RequestFulfil(APIView):
    """Count accepted accelerators by hand, or close short with a reason (procurement)."""

    @extend_schema(request=FulfilInput, responses=RequestDetailSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(FulfilInput(data=request.data))
        requests.record_fulfilment(
            request_id=pk,
            accepted=data["accepted"],
            by=api_user(request),
            short_close_reason=data["reason"],
        )
        return answer(request, pk)


class RequestActual(APIView):
    """Post what was spent on a request (finance)."""

    @extend_schema(request=ActualInput, responses={201: EntrySerializer(many=True)})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(ActualInput(data=request.data))
        entries = spending.post_actual(
            request_id=pk,
            amount=Money(data["amount"], data["currency"]),
            source=data["document"],
            revision=data["revision"],
            by=api_user(request),
        )
        return Response(EntrySerializer(entries, many=True).data, status=201)
