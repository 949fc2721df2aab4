"""Budgets and their ledger over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.api import JobSerializer
from core.drf import idempotent, seen_version
from core.http import api_user
from core.policies import require
from planning import policies
from planning.api.requests import checked, team_named
from planning.api.serializers import (
    AllotInput,
    BudgetSerializer,
    ChangeSerializer,
    CloseInput,
    EntrySerializer,
    OpenBudgetInput,
    ReasonInput,
    TransferInput,
)
from planning.filters import BudgetFilter
from planning.models import Budget, BudgetChange, LedgerEntry
from planning.selectors.budgets import balances, entries
from planning.services import budget_changes, revaluation


def visible(request: Request, pk: int) -> Budget:
    return get_object_or_404(
        Budget.objects.visible_to(api_user(request)).select_related("team"), pk=pk
    )


def shown(budget: Budget, status: int = 200) -> Response:
    context = {"balances": balances([budget])}
    return Response(BudgetSerializer(budget, context=context).data, status=status)


class BudgetList(ListAPIView[Budget]):
    """Budgets the caller may see, with their balances; POST opens one (finance)."""

    serializer_class = BudgetSerializer
    filterset_class = BudgetFilter
    queryset = Budget.objects.none()

    def get_queryset(self) -> QuerySet[Budget]:
        return Budget.objects.visible_to(api_user(self.request)).select_related("team")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        rows = self.filter_queryset(self.get_queryset())
        page = self.paginate_queryset(rows) or []
        context = {"balances": balances(page)}
        return self.get_paginated_response(BudgetSerializer(page, many=True, context=context).data)

    @extend_schema(request=OpenBudgetInput, responses={201: BudgetSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(OpenBudgetInput(data=request.data))
        team = team_named(data.pop("team"))
        return shown(budget_changes.open_budget(team_id=team.pk, by=api_user(request), **data), 201)


class BudgetsRevalue(APIView):
    """Value what is bound in other currencies at today's rates, in the background (finance)."""

    @extend_schema(responses=JobSerializer)
    def get(self, request: Request) -> Response:
        """How far the run that goes on is, or what came of the last one: `stage` says for how many there is no rate."""
        require(policies.can_keep_budgets(api_user(request)))
        job = revaluation.newest_run()
        if job is None:
            raise NotFound
        return Response(JobSerializer(job).data)

    @extend_schema(request=None, responses={202: JobSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        """Start a run; the one that goes on where there is one."""
        job = revaluation.start(by=api_user(request))
        return Response(JobSerializer(job).data, status=202)


class BudgetDetail(APIView):
    """One budget with its balance."""

    @extend_schema(responses=BudgetSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return shown(visible(request, pk))


class EntryList(ListAPIView[LedgerEntry]):
    """The ledger of a budget, newest first."""

    serializer_class = EntrySerializer
    queryset = LedgerEntry.objects.none()
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[LedgerEntry]:
        return entries(visible(self.request, self.kwargs["pk"]))


class BudgetAllot(APIView):
    """Propose an allotment; posted at once where the policy asks for one person."""

    @extend_schema(request=AllotInput, responses={201: ChangeSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(AllotInput(data=request.data))
        change = budget_changes.allot(budget_id=pk, by=api_user(request), **data)
        return Response(ChangeSerializer(change).data, status=201)


class BudgetTransfer(APIView):
    """Propose a transfer from this budget to another."""

    @extend_schema(request=TransferInput, responses={201: ChangeSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(TransferInput(data=request.data))
        receiver = visible(request, data.pop("receiver"))
        change = budget_changes.transfer(
            giver_id=pk, receiver_id=receiver.pk, by=api_user(request), **data
        )
        return Response(ChangeSerializer(change).data, status=201)


class BudgetClose(APIView):
    """Close a quarter that has ended."""

    @extend_schema(request=CloseInput, responses=BudgetSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, pk)
        data = checked(CloseInput(data=request.data))
        return shown(budget_changes.close_budget(budget_id=pk, by=api_user(request), **data))


def _change(request: Request, pk: int) -> BudgetChange:
    budgets = Budget.objects.visible_to(api_user(request)).values("pk")
    return get_object_or_404(BudgetChange, pk=pk, budget__in=budgets)


class ChangeConfirm(APIView):
    """Post a proposed change, as a second person."""

    @extend_schema(request=None, responses=ChangeSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _change(request, pk)
        change = budget_changes.confirm_change(
            change_id=pk, by=api_user(request), version=seen_version(request)
        )
        return Response(ChangeSerializer(change).data)


class ChangeDecline(APIView):
    """Turn a proposed change down."""

    @extend_schema(request=ReasonInput, responses=ChangeSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _change(request, pk)
        data = checked(ReasonInput(data=request.data))
        change = budget_changes.decline_change(
            change_id=pk, by=api_user(request), version=seen_version(request), **data
        )
        return Response(ChangeSerializer(change).data)


class EntryReverse(APIView):
    """Mirror a posting, as another person than the one who posted it."""

    @extend_schema(request=ReasonInput, responses={201: EntrySerializer(many=True)})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        budgets = Budget.objects.visible_to(api_user(request)).values("pk")
        get_object_or_404(LedgerEntry, pk=pk, budget__in=budgets)
        data = checked(ReasonInput(data=request.data))
        mirrored = budget_changes.reverse(entry_id=pk, by=api_user(request), **data)
        return Response(EntrySerializer(mirrored, many=True).data, status=201)
