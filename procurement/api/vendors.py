"""Papers of vendors over the API."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent, seen_version
from core.files import download
from core.http import api_user
from procurement.api import serializers as s
from procurement.api.views import checked, shown, visible
from procurement.models.vendors import DocumentKind
from procurement.services import vendor_documents


class DocumentInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=DocumentKind.choices)
    title = serializers.CharField(max_length=160)
    number = serializers.CharField(required=False, allow_blank=True, max_length=80)
    issued_on = serializers.DateField(required=False, allow_null=True)
    expires_on = serializers.DateField(required=False, allow_null=True)
    file = serializers.FileField(required=False, allow_null=True)


class RetireInput(serializers.Serializer[Any]):
    reason = serializers.CharField()


class VendorDocuments(APIView):
    """Keep a paper of a vendor (multipart with the file, or JSON without one)."""

    @extend_schema(
        request={"multipart/form-data": DocumentInput, "application/json": DocumentInput},
        responses={201: s.VendorSerializer},
    )
    @idempotent
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "vendor", pk)
        data = checked(DocumentInput(data=request.data))
        vendor = vendor_documents.add_document(
            vendor_id=pk, by=api_user(request), version=seen_version(request), **data
        )
        return shown(request, vendor, 201)


class VendorDocumentFile(APIView):
    """The file of a vendor's paper."""

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int, document: int) -> HttpResponseBase:
        vendor = visible(request, "vendor", pk)
        rows = vendor.documents.exclude(file=None).select_related("file")
        return download(get_object_or_404(rows, pk=document).file)


class VendorDocumentRetire(APIView):
    """Take a paper out of use, with a reason."""

    @extend_schema(request=RetireInput, responses=s.VendorSerializer)
    def post(self, request: Request, pk: int, document: int) -> Response:
        visible(request, "vendor", pk)
        data = checked(RetireInput(data=request.data))
        vendor = vendor_documents.retire_document(
            vendor_id=pk, document_id=document, by=api_user(request), **data
        )
        return shown(request, vendor)
