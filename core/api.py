"""The kernel's API: who am I, my notices, my jobs, the trail."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core import jobs
from core.background import stage_of
from core.forms import AuditFilterForm
from core.http import api_user
from core.messages import Message
from core.models import AuditEntry, Job, Membership, Notice, User
from core.policies import can_cancel_job, can_see_job
from core.selectors import filtered_audit, visible_audit
from core.tokens import issue_token, revoke_token


def translated(data: dict[str, Any]) -> str:
    """A stored message in the reader's language; empty when there is none."""
    return Message.from_json(data).render(gettext) if data else ""


class MembershipSerializer(serializers.ModelSerializer[Membership]):
    team: serializers.SlugRelatedField[Any] = serializers.SlugRelatedField(
        slug_field="slug", read_only=True, allow_null=True
    )

    class Meta:
        model = Membership
        fields = ["team", "role"]


class MeSerializer(serializers.ModelSerializer[User]):
    memberships = MembershipSerializer(many=True, read_only=True)

    class Meta:
        model = User
        fields = ["id", "email", "name", "language", "time_zone", "memberships"]


class JobSerializer(serializers.ModelSerializer[Job]):
    stage = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()
    elapsed_seconds = serializers.FloatField(read_only=True)

    class Meta:
        model = Job
        fields = [
            "id",
            "status",
            "stage",
            "percent",
            "elapsed_seconds",
            "error",
            "created_at",
            "finished_at",
        ]

    @extend_schema_field(str)
    def get_stage(self, job: Job) -> str:
        stage = stage_of(job)
        return stage.render(gettext) if stage else ""

    @extend_schema_field(str)
    def get_error(self, job: Job) -> str:
        return translated(job.error)


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    text = serializers.SerializerMethodField()

    class Meta:
        model = Notice
        fields = ["id", "event", "text", "url", "created_at", "read_at"]

    @extend_schema_field(str)
    def get_text(self, notice: Notice) -> str:
        return translated(notice.message)


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    actor = serializers.CharField(source="actor.email", default=None, read_only=True)

    class Meta:
        model = AuditEntry
        fields = [
            "id", "at", "actor", "action", "object_type", "object_id", "object_label",
            "from_state", "to_state", "reason", "data",
        ]  # fmt: skip


class MeView(APIView):
    """The signed-in user and their roles."""

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        return Response(MeSerializer(api_user(request)).data)


class JobView(APIView):
    """Progress of a job."""

    @extend_schema(responses=JobSerializer)
    def get(self, request: Request, pk: str) -> Response:
        return Response(JobSerializer(_job(request, pk)).data)


class JobCancelView(APIView):
    """Stop a job at its next stage."""

    @extend_schema(request=None, responses=JobSerializer)
    def post(self, request: Request, pk: str) -> Response:
        job = _job(request, pk)
        if not can_cancel_job(api_user(request), job):
            raise NotFound
        jobs.cancel(job, by=api_user(request))
        job.refresh_from_db()
        return Response(JobSerializer(job).data)


def _job(request: Request, pk: str) -> Job:
    job = get_object_or_404(Job, pk=pk)
    if not can_see_job(api_user(request), job):
        raise NotFound
    return job


class TokenSerializer(serializers.Serializer[Any]):
    key = serializers.CharField()


class TokenView(APIView):
    """My key to the API."""

    @extend_schema(request=None, responses={201: TokenSerializer})
    def post(self, request: Request) -> Response:
        """A fresh key; the one before stops working."""
        return Response({"key": issue_token(api_user(request))}, status=201)

    @extend_schema(responses={204: None})
    def delete(self, request: Request) -> Response:
        """Take the key away."""
        if not revoke_token(api_user(request)):
            raise NotFound
        return Response(status=204)


class NoticeList(ListAPIView[Notice]):
    """My notices, newest first."""

    serializer_class = NoticeSerializer
    queryset = Notice.objects.none()

    def get_queryset(self) -> QuerySet[Notice]:
        return Notice.objects.filter(recipient=api_user(self.request))


@extend_schema(parameters=[OpenApiParameter(name) for name in AuditFilterForm.base_fields])
class AuditList(ListAPIView[AuditEntry]):
    """The audit trail, within what the reader may see; the same filters as the page."""

    serializer_class = AuditSerializer
    queryset = AuditEntry.objects.none()

    def get_queryset(self) -> QuerySet[AuditEntry]:
        entries = visible_audit(api_user(self.request))
        form = AuditFilterForm(self.request.query_params)
        if not form.is_valid():
            raise ValidationError(
                {name: [str(word) for word in words] for name, words in form.errors.items()}
            )
        return filtered_audit(entries, **form.cleaned_data)
