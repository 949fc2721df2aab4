"""Pages for what went wrong: missing, not allowed, expired form, defect. JSON under /api/, a fragment for htmx."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from core import outages
from core.errors import Unavailable
from core.sign_in import page_of


def _answer(
    request: HttpRequest, status: int, code: str, title: str, text: str, **more: object
) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse({"code": code, "detail": text}, status=status)
    context = {"title": title, "message": text, "code": code, "status": status, **more}
    # The htmx middleware may not have run yet when the request fails early: read the header itself.
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(render_to_string("core/error_fragment.html", context), status=status)
    return render(request, "core/error.html", context, status=status)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404. The same for what does not exist and for what this person may not see."""
    return _answer(
        request,
        404,
        "not_found",
        _("There is nothing here"),
        _("The page does not exist, or you have no access to it."),
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403."""
    return _answer(
        request,
        403,
        "not_permitted",
        _("You may not do this"),
        _("Your roles do not include this step. An administrator can tell you who holds the role."),
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400."""
    return _answer(
        request,
        400,
        "bad_request",
        _("The request could not be read"),
        _("Something in the address or the form is malformed. Go back and try again."),
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 after a form that was open for too long, or cookies that are switched off."""
    return _answer(
        request,
        403,
        "csrf",
        _("This form has expired"),
        _(
            "Nothing was changed. Open the page again: what you typed will stand on it. Cookies must be allowed."
        ),
        back=page_of(request),
        unsent=True,
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """500; 503 or 507 when the store is at fault. Touches neither database nor session: they may be what is broken."""
    refusal = outages.logged(sys.exc_info()[1])
    if refusal is not None:
        return unavailable(request, refusal)
    title = _("Something broke on our side")
    text = _("It has been logged. Nothing is lost: what was saved before is still there.")
    return _bare(request, 500, "internal", title, text)


def unavailable(request: HttpRequest, refusal: Unavailable) -> HttpResponse:
    """What cannot be done until the store is well again, and when to try next. Reads no store either."""
    text = refusal.message.render(gettext)
    response = _bare(request, refusal.status, refusal.code, _("This cannot be done now"), text)
    response["Retry-After"] = str(refusal.retry_after)
    return response


def _bare(request: HttpRequest, status: int, code: str, title: str, text: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse({"code": code, "detail": text}, status=status)
    context = {
        "title": title, "message": text, "code": code, "status": status,
        "request_id": str(getattr(request, "request_id", ""))[:64],
    }  # fmt: skip
    fragment = request.headers.get("HX-Request") == "true"
    template = "core/error_fragment.html" if fragment else "core/error_bare.html"
    return HttpResponse(render_to_string(template, context), status=status)
