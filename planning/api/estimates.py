"""Estimates by API: the command's request in, the command's answer out."""

from __future__ import annotations

from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import DomainError, InputError
from core.messages import Message, msg
from planning.services.estimates import estimate_request
from planning.study.answer_json import answer_json, error_json
from planning.study.fields import check_value
from planning.study.options import COUNT

SHOWN = 5


class EstimateView(APIView):
    """Estimate memory, time and number of accelerators of a workload. Nothing is stored."""

    @extend_schema(
        request=OpenApiTypes.OBJECT,
        responses={200: OpenApiTypes.OBJECT, 422: OpenApiTypes.OBJECT},
        parameters=[
            OpenApiParameter(
                "limit", int, description="How many to show when no accelerator is named"
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """The request and the answer of docs/estimate-schema.md."""

        def say(message: Message) -> str:
            return message.render(gettext)

        try:
            limit = check_value(COUNT, request.query_params.get("limit", SHOWN))
            if not isinstance(request.data, dict):
                raise InputError("", msg("The request must be a JSON object"), limit="object")
            answer = estimate_request(request.data)
        except DomainError as error:
            return Response(error_json(error, say), status=422)
        return Response(answer_json(answer, say, limit=limit if answer.searched else None))
