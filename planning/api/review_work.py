"""Action items and teams' plans over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.http import api_user
from core.models import Team, User
from planning.api.follow_ups import seen_action
from planning.api.requests import checked
from planning.api.reviews import ReviewSerializer, visible
from planning.follow_ups import became
from planning.models.review_work import ReviewAction, TeamPlan
from planning.models.reviews import CapacityReview
from planning.services import review_meeting, review_work


class BecameSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    reference = serializers.CharField()
    state = serializers.CharField()
    url = serializers.CharField()


class ActionSerializer(serializers.ModelSerializer[ReviewAction]):
    owner: serializers.SlugRelatedField[User] = serializers.SlugRelatedField(
        slug_field="email", queryset=User.objects.filter(is_active=True)
    )
    request = serializers.CharField(source="request.reference", default=None, read_only=True)
    became = serializers.SerializerMethodField()

    class Meta:
        model = ReviewAction
        fields = [
            "id",
            "text",
            "pool",
            "owner",
            "due_on",
            "status",
            "version",
            "request",
            "became",
            "outcome",
        ]
        read_only_fields = ["id", "status", "version", "outcome"]

    @extend_schema_field(BecameSerializer(many=True))
    def get_became(self, action: ReviewAction) -> Any:
        found = self.context.get("became")
        if found is None:
            found = became([action.pk], api_user(self.context["request"]))
        return BecameSerializer(found.get(action.pk, []), many=True).data


class EndSerializer(serializers.Serializer[Any]):
    done = serializers.BooleanField()
    outcome = serializers.CharField(required=False, allow_blank=True, max_length=500, default="")
    reference = serializers.CharField(required=False, allow_blank=True, max_length=20, default="")


class TeamPlanSerializer(serializers.ModelSerializer[TeamPlan]):
    class Meta:
        model = TeamPlan
        fields = ["cards", "text", "version", "told_at"]
        read_only_fields = ["version", "told_at"]


class MoveSerializer(serializers.Serializer[Any]):
    meeting_on = serializers.DateField()


class CancelSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=300)


class MeetingSerializer(serializers.Serializer[Any]):
    agenda = serializers.CharField(required=False, allow_blank=True, max_length=4000)
    participants = serializers.SlugRelatedField(
        slug_field="email", queryset=User.objects.filter(is_active=True), many=True, required=False
    )  # type: ignore[var-annotated]


class ActionList(ListAPIView[ReviewAction]):
    """Action items of a review; POST records one."""

    serializer_class = ActionSerializer
    queryset = ReviewAction.objects.none()

    def get_queryset(self) -> QuerySet[ReviewAction]:
        review = visible(self.request, self.kwargs["pk"])
        return review.actions.select_related("owner", "request")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        context = {
            **self.get_serializer_context(),
            "became": became([row.pk for row in rows], api_user(request)),
        }
        return self.get_paginated_response(ActionSerializer(rows, many=True, context=context).data)

    @extend_schema(request=ActionSerializer, responses={201: ActionSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        review = visible(request, pk)
        data = checked(ActionSerializer(data=request.data))
        action = review_work.add_action(review_id=review.pk, by=api_user(request), **data)
        return Response(ActionSerializer(action, context={"request": request}).data, status=201)


class ActionEnd(APIView):
    """What became of an item; `reference` names the request it became."""

    @extend_schema(request=EndSerializer, responses=ActionSerializer)
    def post(self, request: Request, pk: int) -> Response:
        user = api_user(request)
        action = seen_action(request, pk)
        data = checked(EndSerializer(data=request.data))
        ended = review_work.end_action(
            action_id=action.pk, by=user, seen_version=seen_version(request), **data
        )
        return Response(ActionSerializer(ended, context={"request": request}).data)


class TeamPlanView(APIView):
    """A team's plan for a review; for the team's people."""

    def _team(self, request: Request, slug: str) -> Team:
        team = get_object_or_404(Team, slug=slug, active=True)
        if not review_work.may_plan(api_user(request), team):
            raise Http404
        return team

    @extend_schema(responses=TeamPlanSerializer)
    def get(self, request: Request, pk: int, slug: str) -> Response:
        team = self._team(request, slug)
        return Response(TeamPlanSerializer(get_object_or_404(TeamPlan, review=pk, team=team)).data)

    @extend_schema(request=TeamPlanSerializer, responses=TeamPlanSerializer)
    def put(self, request: Request, pk: int, slug: str) -> Response:
        team = self._team(request, slug)
        review = get_object_or_404(CapacityReview, pk=pk)
        data = checked(TeamPlanSerializer(data=request.data))
        plan = review_work.tell_plan(
            review_id=review.pk, team=team, by=api_user(request),
            seen_version=seen_version(request), **data,
        )  # fmt: skip
        return Response(TeamPlanSerializer(plan).data)


class ReviewMove(APIView):
    """Hold the meeting on another day."""

    @extend_schema(request=MoveSerializer, responses=ReviewSerializer)
    def post(self, request: Request, pk: int) -> Response:
        review = visible(request, pk)
        data = checked(MoveSerializer(data=request.data))
        moved = review_meeting.move_meeting(
            review_id=review.pk, by=api_user(request), seen_version=seen_version(request), **data
        )
        return Response(ReviewSerializer(moved).data)


class ReviewCancel(APIView):
    """Call the meeting off; everyone is told once, with a calendar file that takes it out."""

    @extend_schema(request=CancelSerializer, responses=ReviewSerializer)
    def post(self, request: Request, pk: int) -> Response:
        review = visible(request, pk)
        data = checked(CancelSerializer(data=request.data))
        cancelled = review_meeting.cancel_meeting(
            review_id=review.pk, by=api_user(request), seen_version=seen_version(request), **data
        )
        return Response(ReviewSerializer(cancelled).data)


class ReviewMeeting(APIView):
    """Who takes part and what is talked about; PATCH changes what it names."""

    @extend_schema(request=MeetingSerializer, responses=ReviewSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        review = visible(request, pk)
        data = checked(MeetingSerializer(data=request.data))
        planned = review_meeting.plan_meeting(
            review_id=review.pk, by=api_user(request), seen_version=seen_version(request),
            agenda=data.get("agenda", review.agenda),
            people=data.get("participants", list(review.participants.all())),
        )  # fmt: skip
        return Response(ReviewSerializer(planned).data)
