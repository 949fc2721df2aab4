"""Life after acceptance over the API: places of many units, labels, cover on a day, and the files of proof."""

from __future__ import annotations

from datetime import date
from tempfile import TemporaryFile
from typing import Any

from django.conf import settings
from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import get_language
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent
from core.errors import InputError
from core.files import download, download_made
from core.http import api_user
from core.messages import msg
from core.organisation import today
from procurement.api.views import checked, visible
from procurement.asset_labels import MAX_LABELS, render_labels
from procurement.filters import AssetFilter
from procurement.models import Asset
from procurement.selectors.cover import Cover, cover_filter, cover_of, with_cover
from procurement.services.bundles import write_bundle
from procurement.services.moving import place_assets

PDF = {(200, "application/pdf"): OpenApiTypes.BINARY}
MOST_COVERED = 2000  # units in one answer


class PlaceInput(serializers.Serializer[Any]):
    """The new place of many units at once."""

    assets = serializers.ListField(
        child=serializers.IntegerField(), allow_empty=False, max_length=5000
    )
    site = serializers.CharField(max_length=80)
    rack = serializers.CharField(required=False, allow_blank=True, default="", max_length=40)
    rack_unit = serializers.CharField(required=False, allow_blank=True, default="", max_length=20)


class AssetPlace(APIView):
    """Put units in a place: those just received are installed there, the others moved. All of them or none."""

    @extend_schema(request=PlaceInput, responses=OpenApiTypes.OBJECT)
    @idempotent
    def post(self, request: Request) -> Response:
        data = checked(PlaceInput(data=request.data))
        wanted = sorted(set(data.pop("assets")))
        seen = set(
            Asset.objects.visible_to(api_user(request))
            .filter(pk__in=wanted)
            .values_list("pk", flat=True)
        )
        unknown = [pk for pk in wanted if pk not in seen]
        if unknown:
            raise InputError(
                "assets", msg("There is no unit %(value)s", value=str(unknown[0])), value=unknown[0]
            )
        placed = place_assets(asset_ids=wanted, by=api_user(request), **data)
        return Response({"placed": [asset.pk for asset in placed]})


class AssetLabels(APIView):
    """Labels with QR codes of the units that a filter finds (as in the list of assets), at most 500, as PDF."""

    @extend_schema(responses=PDF)
    def get(self, request: Request) -> HttpResponse:
        rows = with_cover(
            Asset.objects.visible_to(api_user(request)).select_related("parent"), today()
        )
        found = AssetFilter(request.query_params, queryset=rows, request=request._request)
        content = render_labels(
            found.qs.order_by("serial")[:MAX_LABELS],
            get_language() or settings.LANGUAGE_CODE,
            made_at=timezone.now(),
        )
        return HttpResponse(
            content, content_type="application/pdf",
            headers={"Content-Disposition": 'attachment; filename="labels.pdf"'},
        )  # fmt: skip


class AssetCover(APIView):
    """Warranty cover of each unit on a day (`on`, today unless said); `state` narrows, `none` lists cards without."""

    @extend_schema(
        parameters=[OpenApiParameter("on", OpenApiTypes.DATE), OpenApiParameter("state", str)],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request) -> Response:
        day, state = _day(request), request.query_params.get("state", "")
        rows = with_cover(Asset.objects.visible_to(api_user(request)).present(), day)
        if state:
            if state not in Cover.values:
                raise InputError(
                    "state",
                    msg("%(value)s is not one of %(choices)s", value=state, choices=", ".join(Cover.values)),
                    value=state, limit=", ".join(Cover.values),
                )  # fmt: skip
            rows = cover_filter(rows, state, day)
        units = list(rows.order_by("serial")[: MOST_COVERED + 1])
        return Response(
            {
                "on": day,
                "cut": len(units) > MOST_COVERED,
                "units": [
                    {
                        "id": unit.pk, "serial": unit.serial, "state": cover_of(unit, day).value,
                        "covered_until": unit.covered_until, "ended_on": unit.cover_ended,
                    }
                    for unit in units[:MOST_COVERED]
                ],
            }
        )  # fmt: skip


def _day(request: Request) -> date:
    given = request.query_params.get("on")
    if not given:
        return today()
    try:
        return date.fromisoformat(given)
    except ValueError:
        raise InputError("on", msg("%(value)s is not a date", value=given), value=given) from None


class RmaBundle(APIView):
    """Everything a claim rests on, as ZIP: its files with their hashes."""

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        rma = visible(request, "rma", pk)
        target = TemporaryFile()
        write_bundle(target, rma)
        target.seek(0)
        return FileResponse(target, as_attachment=True, filename=f"{rma.number}.zip")


class EvidenceDownload(APIView):
    """The bytes of an evidence file as they were uploaded."""

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        return download(visible(request, "evidence", pk).file)


class CertificateDownload(APIView):
    """The signed acceptance certificate in one language, with its evidence attached (PDF/A-3)."""

    @extend_schema(responses=PDF)
    def get(self, request: Request, pk: int, language: str) -> HttpResponseBase:
        acceptance = visible(request, "acceptance", pk)
        row = get_object_or_404(acceptance.certificates.select_related("file"), language=language)
        return download_made(row.file)
