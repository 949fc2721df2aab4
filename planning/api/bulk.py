"""Many requests at once over the API."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from catalog.api.serializers import EncodingInput
from core.drf import idempotent, seen_version
from core.errors import InputError
from core.exports import export_response
from core.http import api_user
from core.messages import msg
from planning.api.requests import checked
from planning.filters import RequestFilter
from planning.models import CapacityRequest, RequestImport, SavedFilter
from planning.request_export import COLUMNS
from planning.services import bulk, filters, imports
from planning.services.bulk import Outcome


class Export(APIView):
    """Requests the caller may see, filtered as the list, as CSV or XLSX."""

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, kind: str) -> HttpResponseBase:
        rows = CapacityRequest.objects.visible_to(api_user(request)).with_current()
        found = RequestFilter(
            request.query_params, queryset=rows.order_by("number"), request=request
        )
        if not found.is_valid():
            name, errors = next(iter(found.errors.items()))
            raise InputError(name, msg("This filter cannot be read"), value=str(errors[0]))
        return export_response(
            kind, name="requests", columns=COLUMNS, rows=found.qs.iterator(chunk_size=500)
        )


class StepOutcomeSerializer(serializers.Serializer[Any]):
    request = serializers.IntegerField(source="request.pk")
    reference = serializers.CharField(source="request.reference")
    refused = serializers.SerializerMethodField(allow_null=True)

    def get_refused(self, outcome: Outcome) -> str | None:
        return outcome.refused.render(gettext) if outcome.refused else None


class BulkInput(serializers.Serializer[Any]):
    action = serializers.CharField()
    requests = serializers.ListField(child=serializers.IntegerField())
    reason = serializers.CharField(required=False, allow_blank=True, default="")


class SeenInput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    seen_hash = serializers.CharField()


class BulkApproveInput(serializers.Serializer[Any]):
    steps = SeenInput(many=True)
    reason = serializers.CharField(required=False, allow_blank=True, default="")


class BulkStep(APIView):
    """Submit or withdraw (`cancel`) many requests; each answers for itself."""

    @extend_schema(request=BulkInput, responses=StepOutcomeSerializer(many=True))
    def post(self, request: Request) -> Response:
        data = checked(BulkInput(data=request.data))
        outcomes = bulk.step_many(
            action=data["action"], request_ids=data["requests"], reason=data["reason"],
            by=api_user(request), path=request.path,
        )  # fmt: skip
        return Response(StepOutcomeSerializer(outcomes, many=True).data)


class BulkApprove(APIView):
    """Approve many steps, each with the hash of what was read; each answers for itself."""

    @extend_schema(request=BulkApproveInput, responses=StepOutcomeSerializer(many=True))
    def post(self, request: Request) -> Response:
        data = checked(BulkApproveInput(data=request.data))
        outcomes = bulk.approve_many(
            seen=[(row["id"], row["seen_hash"]) for row in data["steps"]],
            reason=data["reason"], by=api_user(request), path=request.path,
        )  # fmt: skip
        return Response(StepOutcomeSerializer(outcomes, many=True).data)


# --- imports --------------------------------------------------------------------------------------------------------


class ImportSerializer(serializers.ModelSerializer[RequestImport]):
    """With the fate of every row while it is a preview, and the readings to choose from where they are needed."""

    name = serializers.CharField(source="file.name", read_only=True)
    rows = serializers.SerializerMethodField()
    encodings = serializers.SerializerMethodField()

    class Meta:
        model = RequestImport
        fields = ["id", "name", "encoding", "delimiter", "status", "version", "all_or_nothing", "counts", "job",
                  "encodings", "rows"]  # fmt: skip

    def _preview(self, row: RequestImport) -> imports.Preview[imports.Fate] | None:
        if row.status != RequestImport.Status.PREVIEW:
            return None
        kept: imports.Preview[imports.Fate] | None = getattr(self, "_shown", None)
        if kept is None:
            kept = self._shown = imports.preview(row, row.created_by)
        return kept

    def get_rows(self, row: RequestImport) -> list[dict[str, Any]]:
        shown = self._preview(row)
        return [
            {
                "line": fate.line,
                "fate": fate.fate,
                "messages": [message.render(gettext) for message in fate.messages],
            }
            for fate in (shown.fates if shown else [])
        ]

    def get_encodings(self, row: RequestImport) -> dict[str, str]:
        shown = self._preview(row)
        return dict((shown.choices if shown else None) or {})


class ImportInput(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    encoding = serializers.CharField(required=False, allow_blank=True, default="")


class ApplyInput(serializers.Serializer[Any]):
    all_or_nothing = serializers.BooleanField(required=False, default=True)
    version = serializers.IntegerField(required=False)


def _import(request: Request, pk: int) -> RequestImport:
    rows = RequestImport.objects.select_related("file", "created_by")
    return get_object_or_404(rows, pk=pk, created_by=api_user(request))


def _shown(row: RequestImport, status: int = 200) -> Response:
    return Response(ImportSerializer(row).data, status=status)


class ImportList(APIView):
    """Upload a table (multipart); the answer says what becomes of each row. Nothing is filed yet."""

    @extend_schema(request=ImportInput, responses={201: ImportSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(ImportInput(data=request.data))
        row = imports.start_import(
            upload=data["file"], encoding=data["encoding"], by=api_user(request)
        )
        return _shown(row, 201)


class ImportDetail(APIView):
    """One's own import."""

    @extend_schema(responses=ImportSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return _shown(_import(request, pk))


class ImportEncoding(APIView):
    """Say how the file is to be read."""

    @extend_schema(request=EncodingInput, responses=ImportSerializer)
    def post(self, request: Request, pk: int) -> Response:
        _import(request, pk)
        data = checked(EncodingInput(data=request.data))
        imports.choose_encoding(pk=pk, encoding=data["encoding"], by=api_user(request))
        return _shown(_import(request, pk))


class ImportApply(APIView):
    """File the rows as drafts."""

    @extend_schema(request=ApplyInput, responses=ImportSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _import(request, pk)
        data = checked(ApplyInput(data=request.data))
        imports.apply_import(
            pk=pk, by=api_user(request), all_or_nothing=data["all_or_nothing"],
            seen=seen_version(request),
        )  # fmt: skip
        return _shown(_import(request, pk))


class ImportDiscard(APIView):
    """Put an import aside."""

    @extend_schema(request=None, responses=ImportSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _import(request, pk)
        imports.discard_import(pk=pk, by=api_user(request))
        return _shown(_import(request, pk))


# --- filters --------------------------------------------------------------------------------------------------------


class FilterSerializer(serializers.ModelSerializer[SavedFilter]):
    owner = serializers.EmailField(source="owner.email", read_only=True)

    class Meta:
        model = SavedFilter
        fields = ["id", "owner", "name", "query", "shared"]


class FilterInput(serializers.Serializer[Any]):
    name = serializers.CharField()
    query = serializers.CharField()
    shared = serializers.BooleanField(required=False, default=False)


class FilterList(ListAPIView[SavedFilter]):
    """Filters of the caller and those that others share; POST keeps one."""

    serializer_class = FilterSerializer
    queryset = SavedFilter.objects.none()
    filter_backends: list[Any] = []

    def get_queryset(self) -> QuerySet[SavedFilter]:
        return SavedFilter.objects.visible_to(api_user(self.request)).select_related("owner")

    @extend_schema(request=FilterInput, responses={201: FilterSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(FilterInput(data=request.data))
        row = filters.save_filter(by=api_user(request), **data)
        return Response(FilterSerializer(row).data, status=201)


class FilterDetail(APIView):
    """One filter; DELETE for its owner."""

    def _filter(self, request: Request, pk: int) -> SavedFilter:
        return get_object_or_404(SavedFilter.objects.visible_to(api_user(request)), pk=pk)

    @extend_schema(responses=FilterSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(FilterSerializer(self._filter(request, pk)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        self._filter(request, pk)
        filters.delete_filter(pk=pk, by=api_user(request))
        return Response(status=204)
