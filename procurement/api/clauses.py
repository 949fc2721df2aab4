"""The clause library over the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.drf import idempotent
from core.http import api_user
from procurement import policies
from procurement.api.serializers import Named, burn_in_hours
from procurement.api.views import checked
from procurement.models import Clause
from procurement.selectors.clauses import current_clauses, versions_of, word_warnings
from procurement.services.clauses import write_clause


class ClauseSerializer(serializers.ModelSerializer[Clause]):
    made_by = Named()
    warnings = serializers.SerializerMethodField(
        help_text="Where its words and what it asks as data, or its two languages, tell different figures"
    )

    class Meta:
        model = Clause
        fields = [
            "code", "version", "title_en", "title_zh", "text_en", "text_zh", "asks", "preset", "in_use", "reason",
            "made_by", "made_at", "warnings",
        ]  # fmt: skip

    def get_warnings(self, row: Clause) -> list[str]:
        return word_warnings(row, burn_in_hours(self))


class ClauseInput(serializers.Serializer[Any]):
    """A new clause (`version` 0), or the version after the one that was read."""

    code = serializers.CharField()
    version = serializers.IntegerField(required=False, default=0)
    title_en = serializers.CharField()
    title_zh = serializers.CharField()
    text_en = serializers.CharField()
    text_zh = serializers.CharField()
    asks = serializers.DictField(
        required=False,
        help_text="What it asks of the warranty as data, by the names of the warranty's terms and `last_payment`; left "
        "out: as the version before",
    )
    preset = serializers.BooleanField(required=False, default=True)
    in_use = serializers.BooleanField(required=False, default=True)
    reason = serializers.CharField(required=False, allow_blank=True)


def _reader(request: Request) -> None:
    if not policies.can_read_clauses(api_user(request)):
        raise NotFound


class Clauses(APIView):
    """The newest version of each clause. POST adds a clause or a version; nothing is overwritten."""

    @extend_schema(responses=ClauseSerializer(many=True))
    def get(self, request: Request) -> Response:
        _reader(request)
        rows = list(current_clauses(retired=True).values())
        return Response(ClauseSerializer(rows, many=True).data)

    @extend_schema(request=ClauseInput, responses={201: ClauseSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        _reader(request)
        data = checked(ClauseInput(data=request.data))
        return Response(
            ClauseSerializer(write_clause(by=api_user(request), **data)).data, status=201
        )


class ClauseVersions(APIView):
    """Every version of one clause, newest first."""

    @extend_schema(
        operation_id="procurement_clause_versions", responses=ClauseSerializer(many=True)
    )
    def get(self, request: Request, code: str) -> Response:
        _reader(request)
        rows = versions_of(code)
        if not rows:
            raise NotFound
        return Response(ClauseSerializer(rows, many=True).data)
