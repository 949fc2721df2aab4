"""A form whose refusal is told on another page stands there again as it was filled in.

A view that answers a POST with a redirect and an error, or with an error page, loses what was typed: the form lives on
a page that the view does not draw. The middleware here keeps what was sent once, in the session of who sent it, until
the page that the answer leads to is shown; `templates/base.html` gives it to static/js/refused.js, which fills in the
form of the same address and marks the fields. Passwords, tokens and files are never kept, nor more than `MOST`
characters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse

from core.errors import DomainError, InputError
from core.once import told_a_refusal
from core.sign_in import page_of
from core.stale import UNTYPED
from core.templatetags.ui import said

KEY = "refused"
MOST = 100_000  # characters of a session's row
AGE = 900  # s
SECRET = ("password", "token", "secret", "key")
FIELD_ERROR = "at-field"  # tag of a message that says what the field itself says too


def say_errors(request: HttpRequest, form: forms.BaseForm) -> None:
    """Tell what a form refused as messages, each with its field's label: for forms that live on another page."""
    for field, errors in form.errors.items():
        known = field in form.fields
        label = str(form.fields[field].label or "") if known else ""
        texts = [str(error) for error in errors]
        if known:
            _mark(request, form.add_prefix(field), texts)
        text = f"{label}: {' '.join(texts)}".removeprefix(": ")
        messages.error(request, text, extra_tags=FIELD_ERROR if known else "")


def say_refusal(request: HttpRequest, error: DomainError) -> None:
    """Tell a domain error as a message, and at its field when the form that was sent has one of that name."""
    text = said(error.message)
    known = isinstance(error, InputError) and error.field in request.POST
    if known and isinstance(error, InputError):
        _mark(request, error.field, [text])
    messages.error(request, text)


def _mark(request: HttpRequest, field: str, texts: list[str]) -> None:
    marked: dict[str, list[str]] = request.__dict__.setdefault("refused_fields", {})
    marked.setdefault(field, []).extend(texts)


class RefusedMiddleware:
    """Keeps what a refused form held."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if (
            request.method == "POST"
            and request.headers.get("HX-Request") != "true"
            and not request.path.startswith(("/api/", "/accounts/"))
            and request.user.is_authenticated
        ):
            self._keep(request, response)
        return response

    def _keep(self, request: HttpRequest, response: HttpResponse) -> None:
        if response.status_code in (302, 303):
            page = urlsplit(response["Location"]).path if told_a_refusal(request) else ""
        else:
            page = urlsplit(page_of(request)).path if hasattr(response, "refusal") else ""
        values = {
            name: list(given)
            for name, given in request.POST.lists()
            if name not in ("csrfmiddlewaretoken", "once")
            and not any(part in name.lower() for part in SECRET)
        }
        if not page or not any(map(any, values.values())):
            return
        if sum(len(text) for given in values.values() for text in given) > MOST:
            return
        request.session[KEY] = {
            "page": page, "at": int(time.time()), "action": request.path, "values": values,
            "errors": getattr(request, "refused_fields", {}),
        }  # fmt: skip


def kept(request: HttpRequest) -> Callable[[], dict[str, Any] | None]:
    """Gives what stands again on this page, taken from the session when the page is drawn; None: nothing."""

    @cache
    def take() -> dict[str, Any] | None:
        session = getattr(request, "session", None)
        found = session.get(KEY) if session is not None and request.method == "GET" else None
        if not isinstance(found, dict) or session is None or found.get("page") != request.path:
            return None
        del session[KEY]
        if time.time() - found["at"] > AGE:
            return None
        shown = (given for name, given in found["values"].items() if name not in UNTYPED)
        return {**found, "texts": [text for given in shown for text in given if text.strip()]}

    return take
