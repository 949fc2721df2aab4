"""A quote by table over the API: template, dry run, encoding, recording."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from catalog.api.serializers import EncodingInput
from core.drf import StrictJSONField, idempotent, seen_version
from core.exports import export_response
from core.http import api_user
from core.messages import Message
from core.whole import whole
from procurement.api.serializers import WarrantySerializer
from procurement.api.views import checked, visible
from procurement.models import QuoteImport, Rfq
from procurement.quote_template import quote_template
from procurement.services import quote_imports

ROWS = 500  # of one answer


def said(entry: Any) -> str:
    return Message.from_json(entry).render(gettext)


class QuoteImportInput(serializers.Serializer[Any]):
    """The table, and what it does not say itself. `warranty` as JSON."""

    vendor = serializers.IntegerField()
    file = serializers.FileField()
    encoding = serializers.CharField(required=False, allow_blank=True, default="")
    currency = serializers.CharField(required=False)
    valid_until = serializers.DateField(required=False)
    lead_time_days = serializers.IntegerField(required=False)
    partial_delivery = serializers.BooleanField(required=False, allow_null=True, default=None)
    tax_mode = serializers.CharField(required=False)
    reference = serializers.CharField(required=False, allow_blank=True)
    incoterm = serializers.CharField(required=False, allow_blank=True)
    payment_terms = serializers.CharField(required=False, allow_blank=True)
    notes = serializers.CharField(required=False, allow_blank=True)
    warranty = StrictJSONField(required=False, default=dict)


class RowSerializer(serializers.Serializer[Any]):
    row = serializers.IntegerField(help_text="In the file")
    fate = serializers.ChoiceField(choices=[quote_imports.ADD, quote_imports.REFUSED])
    messages = serializers.ListField(child=serializers.CharField())
    cells = serializers.DictField(child=serializers.CharField())


class QuoteImportSerializer(serializers.ModelSerializer[QuoteImport]):
    """What becomes of each row: the refused ones first. Prices of a sealed bid are not among the cells."""

    name = serializers.CharField(source="file.name", read_only=True)
    counts = serializers.SerializerMethodField()
    problems = serializers.SerializerMethodField()
    choices = serializers.SerializerMethodField(
        help_text="Encodings to choose from, with a sample of each"
    )
    rows = serializers.SerializerMethodField(help_text=f"{ROWS} from `offset` on")

    class Meta:
        model = QuoteImport
        fields = [
            "id", "status", "version", "rfq", "vendor", "name", "encoding", "delimiter", "counts",
            "problems", "choices", "rows", "quote", "job", "created_at",
        ]  # fmt: skip

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_counts(self, row: QuoteImport) -> dict[str, int]:
        return row.report.get("counts", {})  # type: ignore[no-any-return]

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_problems(self, row: QuoteImport) -> list[str]:
        refused = row.report.get("refused")
        return [
            said(one) for one in [*([refused] if refused else []), *row.report.get("problems", [])]
        ]

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_choices(self, row: QuoteImport) -> dict[str, str]:
        return row.report.get("choices") or {}

    @extend_schema_field(RowSerializer(many=True))
    def get_rows(self, row: QuoteImport) -> list[dict[str, Any]]:
        offset = self.context.get("offset", 0)
        rows = quote_imports.rows_refused_first(row)
        return [
            {"row": line, "fate": fate, "messages": [said(one) for one in texts], "cells": cells}
            for line, fate, texts, cells in rows[offset : offset + ROWS]
        ]


def _own(request: Request, pk: int) -> QuoteImport:
    rows = QuoteImport.objects.select_related("file")
    return get_object_or_404(rows, pk=pk, created_by=api_user(request))


def _shown(row: QuoteImport, status: int = 200, offset: int = 0) -> Response:
    data = QuoteImportSerializer(row, context={"offset": offset}).data
    return Response(data, status=status, headers={"ETag": f'"{row.version}"'})


class QuoteTemplate(APIView):
    """The RFQ's lines as a table for vendors to fill in, headed in English or Chinese (`language=zh`)."""

    @extend_schema(
        parameters=[OpenApiParameter("language", str)],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, pk: int, kind: str) -> HttpResponseBase:
        rfq: Rfq = visible(request, "rfq", pk)
        language = request.query_params.get("language", "en")
        return export_response(kind, **quote_template(rfq, language))


class RfqQuoteImports(APIView):
    """Upload a vendor's table for a dry run; nothing is recorded. A large one is read by a job: poll the answer."""

    @extend_schema(
        request={"multipart/form-data": QuoteImportInput}, responses={201: QuoteImportSerializer}
    )
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "rfq", pk)
        data = checked(QuoteImportInput(data=request.data))
        warranty = checked(WarrantySerializer(data=data.pop("warranty"), partial=True))
        row = quote_imports.start_import(
            rfq_id=pk, vendor_id=data.pop("vendor"), upload=data.pop("file"),
            encoding=data.pop("encoding"), warranty=warranty, head=data, by=api_user(request),
        )  # fmt: skip
        return _shown(row, 201)


class QuoteImportDetail(APIView):
    """What becomes of each row."""

    @extend_schema(parameters=[OpenApiParameter("offset", int)], responses=QuoteImportSerializer)
    def get(self, request: Request, pk: int) -> Response:
        offset = whole(request.query_params.get("offset", "")) or 0
        return _shown(_own(request, pk), offset=offset)


class QuoteImportApply(APIView):
    """Record the quote, all rows or none."""

    @extend_schema(request=None, responses=QuoteImportSerializer)
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        _own(request, pk)
        row = quote_imports.apply_import(pk=pk, by=api_user(request), seen=seen_version(request))
        return _shown(row)


class QuoteImportEncoding(APIView):
    """Say how the file is to be read."""

    @extend_schema(request=EncodingInput, responses=QuoteImportSerializer)
    def post(self, request: Request, pk: int) -> Response:
        _own(request, pk)
        data = checked(EncodingInput(data=request.data))
        return _shown(quote_imports.choose_encoding(pk=pk, by=api_user(request), **data))


class QuoteImportDiscard(APIView):
    """Put the table aside."""

    @extend_schema(request=None, responses=QuoteImportSerializer)
    def post(self, request: Request, pk: int) -> Response:
        _own(request, pk)
        return _shown(quote_imports.discard_import(pk=pk, by=api_user(request)))
