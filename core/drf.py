"""The API's common parts: errors, pages, idempotent POSTs, and the version a caller saw."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.db import DatabaseError, transaction
from django.utils.translation import gettext
from rest_framework import serializers
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.parsers import JSONParser
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_handler
from rest_framework.views import set_rollback

from core import outages
from core.audit import record_refusal
from core.errors import DomainError, InputError, NotPermitted, StaleData, Unavailable
from core.http import api_user
from core.messages import msg
from core.once import claim, content_digest
from core.strict_json import JSONProblem, check_json, read_json


class StrictJSONParser(JSONParser):
    """JSON that every store can keep: not nested beyond what can be read, no half characters, no NUL."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
            check_json(data)
        except RecursionError:
            raise ParseError(gettext("The JSON is nested too deeply")) from None
        except JSONProblem as problem:
            raise ParseError(problem.message.render(gettext)) from None
        return data


class StrictJSONField(serializers.JSONField):
    """JSON that every store can keep, also where it comes as the text of a form's part and no parser has seen it."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            if getattr(data, "is_json_string", False):
                return read_json(str(data))
            check_json(data)
        except JSONProblem as problem:
            raise ValidationError(problem.message.render(gettext)) from None
        return data


class Pagination(PageNumberPagination):
    """Fifty rows a page; at most 500 when asked."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Domain errors keep their status and code; input errors name field, value and limit."""
    if isinstance(exc, DatabaseError | OSError):
        exc = outages.logged(exc) or exc
    if outages.beyond(exc):
        exc = ParseError(gettext("A date, number or character is outside what can be kept"))
    if not isinstance(exc, DomainError):
        return drf_handler(exc, context)
    set_rollback()
    request: Request = context["request"]
    if isinstance(exc, NotPermitted) and request.method not in SAFE_METHODS:
        record_refusal(exc, by=api_user(request), path=request.path)
    body: dict[str, Any] = {"code": exc.code, "detail": exc.message.render(gettext)}
    if isinstance(exc, InputError):
        body |= {"field": exc.field, "value": _plain(exc.value), "limit": _plain(exc.limit)}
    if isinstance(exc, StaleData):
        body["changes"] = exc.changes
    headers = {"Retry-After": str(exc.retry_after)} if isinstance(exc, Unavailable) else None
    return Response(body, status=exc.status, headers=headers)


def _plain(value: object) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def seen_version(request: Request) -> int | None:
    """The version the caller read: `If-Match: "3"` or `version` in the body. None when not sent."""
    body = request.data if isinstance(request.data, Mapping) else {}
    sent = body.get("version")
    raw = request.headers.get("If-Match", "").strip('W/" ') or str("" if sent is None else sent)
    if not raw:
        return None
    try:
        return int(raw)
    except ValueError:
        raise InputError(
            "version", msg("version must be a whole number, got %(value)s", value=raw), value=raw
        ) from None


class IdempotencyConflict(DomainError):
    """The key was used before, for another body or a call that still runs."""

    status = 422
    code = "idempotency_conflict"


def idempotent(handler: Callable[..., Response]) -> Callable[..., Response]:
    """Honour `Idempotency-Key` on a POST method: a replay returns the first answer; another body is refused.

    Keys belong to the person who sends; on a view that no person calls, to what its `sender` names.
    """

    def wrapped(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = request.headers.get("Idempotency-Key", "")
        if not key:
            return handler(view, request, *args, **kwargs)
        digest = _digest(request)
        sender = getattr(view, "sender", None)
        user = api_user(request) if sender is None else None
        named = key if sender is None else f"{sender}:{key}"
        with transaction.atomic():
            row, is_new = claim(user=user, key=named[:100], path=request.path, digest=digest)
            if not is_new:
                if row.body_sha256 != digest:
                    raise IdempotencyConflict(
                        msg("This idempotency key was used before with another body")
                    )
                return Response(
                    row.response, status=row.status, headers={"Idempotent-Replay": "true"}
                )
            response = handler(view, request, *args, **kwargs)
            row.status = response.status_code
            row.response = (
                json.loads(JSONRenderer().render(response.data))
                if response.data is not None
                else None
            )
            row.save(update_fields=["status", "response"])
            return response

    wrapped.__name__ = handler.__name__
    wrapped.__doc__ = handler.__doc__
    wrapped.is_idempotent = True  # type: ignore[attr-defined]
    return wrapped


def _digest(request: Request) -> str:
    """SHA-256 of the address, the body and the content of its files."""
    body = json.dumps(request.data, sort_keys=True, default=str)
    return content_digest(request.path + body, request.FILES)
