"""The trouble finder over the API: `?question=yes` for each question that can be answered."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.http import api_user
from core.messages import Message
from planning import trouble
from planning.selectors.signs import signs_of
from planning.trouble_table import BY_KEY, SYMPTOMS


def say(message: Message) -> str:
    return message.render(gettext)


class TroubleList(APIView):
    """Symptoms."""

    @extend_schema(operation_id="v1_trouble_list", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        return Response([{"key": s.key, "title": say(s.title)} for s in SYMPTOMS])


class TroubleDetail(APIView):
    """Causes of a symptom, likeliest first, with checks and remedies."""

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, key: str) -> Response:
        symptom = BY_KEY.get(key)
        if symptom is None:
            raise Http404
        answers = {
            q.key: request.query_params[q.key] == "yes"
            for q in symptom.questions
            if request.query_params.get(q.key) in ("yes", "no")
        }
        causes = trouble.ranked(symptom, answers, signs_of(api_user(request)))
        return Response(
            {
                "key": symptom.key,
                "title": say(symptom.title),
                "questions": [{"key": q.key, "text": say(q.text)} for q in symptom.questions],
                "causes": [_cause(one) for one in causes],
            }
        )


def _cause(one: trouble.Ranked) -> dict[str, Any]:
    cause = one.cause
    return {
        "key": cause.key,
        "title": say(cause.title),
        "score": one.score,
        "telemetry": say(cause.shown) if one.by_telemetry and cause.shown else None,
        "checks": [{"text": say(c.text), "command": c.command} for c in cause.checks],
        "remedies": [{"text": say(r.text), "cost": say(r.cost)} for r in cause.remedies],
    }
