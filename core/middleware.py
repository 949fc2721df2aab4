"""Request-wide concerns: the user's language and zone, the audit context, and domain errors turned into answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone, translation
from django.utils.translation import gettext

from core import error_pages, outages, stale
from core.audit import act, record_refusal
from core.errors import DomainError, InputError, NotPermitted, StaleData, StoreAway, Unavailable
from core.messages import msg
from core.models import Organisation, User

log = structlog.get_logger(__name__)
Handler = Callable[[HttpRequest], HttpResponse]


class PreferencesMiddleware:
    """Activate the signed-in user's language and zone; the organisation's zone when they set none."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        zone = ""
        if request.user.is_authenticated:
            # The choice made on this device (cookie, set by the language switch) wins over the stored preference.
            if request.user.language and settings.LANGUAGE_COOKIE_NAME not in request.COOKIES:
                translation.activate(request.user.language)
                request.LANGUAGE_CODE = translation.get_language()
            zone = request.user.time_zone
        if not zone:
            zone = (
                Organisation.objects.values_list("time_zone", flat=True).first()
                or settings.TIME_ZONE
            )
        with timezone.override(ZoneInfo(zone)):
            return self.get_response(request)


class AuditContextMiddleware:
    """Give every audit entry of a request the request's id, the same that its log lines carry."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = structlog.contextvars.get_contextvars().get("request_id", "")
        token = act.set(str(request_id)[:64])
        try:
            response = self.get_response(request)
        finally:
            act.reset(token)
        response["X-Request-ID"] = str(request_id)
        return response


class PrivateMiddleware:
    """Answers are for one person and not kept: after a log-out the browser's Back shows no page of somebody else.

    Static files pass by before (WhiteNoise); a view that says otherwise is left alone.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            response["Cache-Control"] = "private, no-store"
        return response


class DomainErrorMiddleware:
    """A DomainError that reaches the edge becomes a page, a fragment or JSON with the right status."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if outages.beyond(exception):
            exception = InputError(
                "", msg("A date, number or character is outside what can be kept")
            )
        if not isinstance(exception, DomainError):
            refusal = outages.logged(exception)
            if refusal is None:
                return None
            exception = refusal
        if isinstance(exception, StoreAway):
            return error_pages.unavailable(request, exception)
        text = exception.message.render(gettext)
        user = request.user
        if (
            isinstance(exception, NotPermitted)
            and isinstance(user, User)
            and request.method == "POST"
        ):
            record_refusal(exception, by=user, path=request.path)
        log.info("domain_error", code=exception.code, status=exception.status, text=str(exception))
        if request.path.startswith("/api/"):
            return _later(
                JsonResponse({"code": exception.code, "detail": text}, status=exception.status),
                exception,
            )
        context = {
            "message": text,
            "code": exception.code,
            "field": exception.field if isinstance(exception, InputError) else "",
            **(_since(request, exception) if isinstance(exception, StaleData) else {}),
            "back": request.headers.get("referer", "/") if request.method == "POST" else "/",
        }
        template = (
            "core/error_fragment.html" if getattr(request, "htmx", False) else "core/error.html"
        )
        response = render(request, template, context, status=exception.status)
        # core/refused.py: what was typed stands on the page that it leads back to
        setattr(response, "refusal", exception.code)  # noqa: B010 - no field of HttpResponse
        return _later(response, exception)


def _since(request: HttpRequest, error: StaleData) -> dict[str, Any]:
    return {
        "changes": stale.rows(error),
        "happened": error.happened,
        "typed": stale.typed(request, error),
    }


def _later(response: HttpResponse, error: DomainError) -> HttpResponse:
    if isinstance(error, Unavailable):
        response["Retry-After"] = str(error.retry_after)
    return response
