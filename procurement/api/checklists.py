"""Checklists over the API: those that come with the product, and a contract's with its deviations."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from procurement.api.views import visible
from procurement.models import ChecklistTemplate
from procurement.models.burn_in import KIND_CHOICES
from procurement.services.checklists import standing_checklists
from procurement.services.contract_checklists import contract_checklists, deviations


def _told(row: ChecklistTemplate) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "version": row.version,
        "kind": row.asset_kind,
        "template_version": row.base.version if row.base else None,
        "deviations": [
            {"code": found.code, "text": found.words.render(gettext)} for found in deviations(row)
        ],
        "items": [
            {
                "code": item.code,
                "text": item.local_text,
                "criterion": item.local_criterion,
                "evidence": item.local_evidence,
                "weight": item.weight,
                "decided_by": item.decided_by,
                "formats": item.formats,
            }
            for item in row.items.all()
        ],
    }


class OrderChecklists(APIView):
    """The checklists that units of an order are held to; `template_version` null: not copied into the contract yet."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Response:
        order = visible(request, "order", pk)
        return Response({"checklists": [_told(row) for row in contract_checklists(order)]})


class ShippedChecklists(APIView):
    """The newest checklist templates that come with the product: card, server, cloud instance, other."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        standing = standing_checklists(kind for kind, _label in KIND_CHOICES)
        return Response({"checklists": [_told(row) for row in standing.values()]})
