"""API of studies: start, poll, read, choose, cancel, publish, turn; the same services and policies as the pages."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.background import stage_of
from core.drf import idempotent, seen_version
from core.files import download
from core.http import api_user
from core.messages import Message
from planning.models import CapacityRequest, Study, StudyBrief
from planning.models.studies import StudyQuerySet
from planning.services import briefs, plans, studies
from planning.study.search.say import said
from planning.study.search.what_if import LARGEST, SMALLEST, Changes


def say(message: Message) -> str:
    """In the caller's language."""
    return message.render(gettext)


class StudySerializer(serializers.ModelSerializer[Study]):
    """A study without its result; `job` says how far it is."""

    request = serializers.IntegerField(source="revision.request_id", read_only=True)
    revision = serializers.IntegerField(source="revision.number", read_only=True)
    percent = serializers.IntegerField(source="job.percent", default=None, read_only=True)
    stage = serializers.SerializerMethodField()
    error = serializers.SerializerMethodField()

    class Meta:
        model = Study
        fields = [
            "id", "request", "revision", "status", "version", "percent", "stage", "error", "inputs_hash", "result_hash",
            "catalogue_date", "constants_version", "seed", "created_at", "finished_at",
        ]  # fmt: skip

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_stage(self, study: Study) -> str | None:
        stage = stage_of(study.job) if study.job else None
        return say(stage) if stage else None

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_error(self, study: Study) -> str | None:
        return say(Message.from_json(study.error)) if study.error else None


class StudyDetailSerializer(StudySerializer):
    """With the result (docs/study-schema.md), messages in the caller's language; null until it is ready."""

    result = serializers.SerializerMethodField()
    preview = serializers.DictField(allow_null=True, read_only=True)  # first plans while it runs

    class Meta(StudySerializer.Meta):
        fields = [*StudySerializer.Meta.fields, "preview", "result"]

    @extend_schema_field(serializers.DictField(allow_null=True))
    def get_result(self, study: Study) -> Any:
        return None if study.result is None else said(study.result, say)


class ChooseInput(serializers.Serializer[Any]):
    plan_key = serializers.CharField()
    version = serializers.IntegerField(required=False)


class ChangesInput(serializers.Serializer[Any]):
    """Factors of the study's own value, and absolute values; left out: as it was."""

    amount = serializers.FloatField(required=False, min_value=SMALLEST, max_value=LARGEST)
    price = serializers.FloatField(required=False, min_value=SMALLEST, max_value=LARGEST)
    duration_days = serializers.IntegerField(required=False)
    growth_per_month = serializers.FloatField(required=False)
    utilisation = serializers.FloatField(required=False)


class LanguageInput(serializers.Serializer[Any]):
    language = serializers.CharField(max_length=10)


class BriefSerializer(serializers.ModelSerializer[StudyBrief]):
    sha256 = serializers.CharField(source="file.sha256", default=None, read_only=True)

    class Meta:
        model = StudyBrief
        fields = ["id", "language", "template_version", "job", "made_at", "sha256"]


def visible(request: Request, pk: int) -> Study:
    """The study, or 404 outside the caller's teams."""
    rows = Study.objects.visible_to(api_user(request))
    return get_object_or_404(rows.select_related("revision__request", "job", "snapshot"), pk=pk)


class StudyList(ListAPIView[Study]):
    """Studies of one request, newest first; POST starts one of the current revision at today's prices."""

    serializer_class = StudySerializer
    queryset = Study.objects.none()
    filter_backends: list[Any] = []

    def _owner(self) -> CapacityRequest:
        rows = CapacityRequest.objects.visible_to(api_user(self.request))
        return get_object_or_404(rows, pk=self.kwargs["pk"])

    def get_queryset(self) -> QuerySet[Study]:
        rows: StudyQuerySet = Study.objects.filter(revision__request=self._owner())
        return rows.light().select_related("revision", "job")

    @extend_schema(request=None, responses={201: StudySerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        owner = self._owner()
        study = studies.request_study(revision_id=owner.current.pk, by=api_user(request))
        return Response(StudySerializer(study).data, status=201)


class StudyDetail(APIView):
    """One study: poll it until `status` is ready or failed."""

    @extend_schema(responses=StudyDetailSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(StudyDetailSerializer(visible(request, pk)).data)


class StudyChoose(APIView):
    """Choose one of its plans for the request."""

    @extend_schema(request=ChooseInput, responses=StudySerializer)
    def post(self, request: Request, pk: int) -> Response:
        study = visible(request, pk)
        body = ChooseInput(data=request.data)
        body.is_valid(raise_exception=True)
        plans.choose_plan(
            revision_id=study.revision_id,
            study_id=study.pk,
            plan_key=body.validated_data["plan_key"],
            by=api_user(request),
            version=seen_version(request),
        )
        return Response(StudySerializer(study).data)


class StudyCancel(APIView):
    """Stop it at its next stage."""

    @extend_schema(request=None, responses=StudySerializer)
    def post(self, request: Request, pk: int) -> Response:
        study = visible(request, pk)
        studies.cancel_study(study_id=study.pk, by=api_user(request))
        return Response(StudySerializer(visible(request, pk)).data)


class StudyPublish(APIView):
    """Put it before the deciders."""

    @extend_schema(request=None, responses=StudySerializer)
    def post(self, request: Request, pk: int) -> Response:
        briefs.publish_study(study_id=visible(request, pk).pk, by=api_user(request))
        return Response(StudySerializer(visible(request, pk)).data)


class StudyWhatIf(APIView):
    """The same question with other numbers. Nothing is stored."""

    @extend_schema(request=ChangesInput, responses=OpenApiTypes.OBJECT)
    def post(self, request: Request, pk: int) -> Response:
        study = visible(request, pk)
        body = ChangesInput(data=request.data)
        body.is_valid(raise_exception=True)
        found = studies.what_if(study, Changes(**body.validated_data))
        return Response(said(found, say))


class StudyCompare(APIView):
    """What differs between two studies of one request, the older one first."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int, other: int) -> Response:
        first, second = sorted((visible(request, pk), visible(request, other)), key=lambda s: s.pk)
        if first.revision.request_id != second.revision.request_id:
            raise NotFound
        return Response(said(studies.difference(first, second), say))


class StudyBriefs(APIView):
    """The decision briefs; POST with a language has one drawn."""

    @extend_schema(responses=BriefSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        rows = briefs.current_briefs(visible(request, pk))
        return Response(BriefSerializer(rows, many=True).data)

    @extend_schema(request=LanguageInput, responses={201: BriefSerializer})
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        body = LanguageInput(data=request.data)
        body.is_valid(raise_exception=True)
        language = body.validated_data["language"]
        brief = briefs.request_brief(
            study_id=visible(request, pk).pk, language=language, by=api_user(request)
        )
        return Response(BriefSerializer(brief).data, status=201)


class StudyBriefFile(APIView):
    """The PDF."""

    @extend_schema(responses={(200, "application/pdf"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int, language: str) -> FileResponse:
        brief = get_object_or_404(
            briefs.current_briefs(visible(request, pk)), language=language, file__isnull=False
        )
        if brief.file is None:
            raise NotFound
        return download(brief.file)
