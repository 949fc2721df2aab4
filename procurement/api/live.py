"""Live burn-in over the API: the push of collectors, the board, and the token."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import InputError
from core.http import api_user
from core.messages import msg
from procurement.api.views import checked, visible
from procurement.models import Asset, Rma
from procurement.selectors.failures import failure_board
from procurement.selectors.live import live_board, live_json
from procurement.services import live

MAX_BODY = 8 << 20
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")


class TextParser(BaseParser):
    """What a tool printed, as it is."""

    media_type = "text/*"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        body = stream.read(MAX_BODY + 1)
        if len(body) > MAX_BODY:
            raise InputError(
                "body",
                msg("The push has more than %(limit)s bytes", limit=MAX_BODY),
                value=len(body),
                limit=MAX_BODY,
            )
        return str(body.decode("utf-8", errors="replace"))


class LivePush(APIView):
    """Samples of a collector as text: `nvidia-smi --query-gpu=… --format=csv` or dcgm-exporter's metrics.

    `Authorization: Feed TOKEN`. Sending the same again changes nothing.
    """

    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []
    throttle_classes: list[Any] = []
    parser_classes = [TextParser]

    @extend_schema(
        request={"text/plain": OpenApiTypes.STR},
        responses=OpenApiTypes.OBJECT,
        parameters=[
            OpenApiParameter("utc_offset", str, description="of stamps without a zone, as +08:00")
        ],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        word, _, token = request.headers.get("Authorization", "").partition(" ")
        feed = live.feed_of_token(token.strip()) if word == "Feed" else None
        if feed is None:
            raise AuthenticationFailed
        body = request.data if isinstance(request.data, str) else ""
        offset = _offset(request.query_params.get("utc_offset", ""))
        return Response(live.push_samples(feed=feed, body=body, offset=offset))

    def get_authenticate_header(self, request: Request) -> str:
        return "Feed"


def _offset(text: str) -> timedelta:
    """ "+08:00" as a timedelta; the plus sign may have become a space in the address."""
    if not text:
        return timedelta(0)
    found = _OFFSET.fullmatch(text.replace(" ", "+"))
    if not found or int(found[2]) > 14 or int(found[3]) > 59:
        raise InputError(
            "utc_offset", msg("%(value)s is not an offset such as +08:00", value=text), value=text
        )
    offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return -offset if found[1] == "-" else offset


class TokenInput(serializers.Serializer[Any]):
    interval_seconds = serializers.IntegerField(default=30, min_value=1, max_value=600)


class LiveToken(APIView):
    """A new push token for a delivery; the answer is the only place where it is shown."""

    @extend_schema(request=TokenInput, responses={201: OpenApiTypes.OBJECT})
    def post(self, request: Request, pk: int) -> Response:
        visible(request, "delivery", pk)
        data = checked(TokenInput(data=request.data))
        token = live.issue_feed_token(delivery_id=pk, by=api_user(request), **data)
        return Response({"token": token}, status=201)


class FailuresView(APIView):
    """Failure statistics by model and batch with 95 % intervals, and days that vendors take for returns."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        user = api_user(request)
        board = failure_board(
            Asset.objects.visible_to(user), Rma.objects.visible_to(user), timezone.now()
        )
        return Response(asdict(board))


class LiveBoardView(APIView):
    """What each card that burns in shows now."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int) -> Response:
        return Response(live_json(live_board(visible(request, "delivery", pk), timezone.now())))
