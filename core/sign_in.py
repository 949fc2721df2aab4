"""What happens to somebody whose session has ended while a page was open.

A form that is sent without a session leads to the sign-in and from there back to the page that it stands on; the
browser has kept what was typed (static/js/typed.js) and puts it back. A fragment (htmx) is refused with 401 and a link:
the page stays, with all that is typed on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext as _

SAFE = ("GET", "HEAD", "OPTIONS")


def own_address(request: HttpRequest, url: str) -> str:
    """`url` when it leads to this site, else empty: an address from a form is never trusted."""
    safe = url_has_allowed_host_and_scheme(
        url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    # A word alone would be taken for the name of a page, which there may not be.
    return url if safe and (url.startswith("/") or "://" in url) else ""


def page_of(request: HttpRequest) -> str:
    """Path and query of the page that a form or a fragment was sent from; empty when it is unknown or not ours."""
    told = request.headers.get("HX-Current-URL") or request.headers.get("Referer") or ""
    found = urlsplit(own_address(request, told))
    return f"{found.path}{'?' + found.query if found.query else ''}"


class SignInMiddleware(LoginRequiredMiddleware):
    """Django's, with the way back for what was sent without a session."""

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: Any,
        view_kwargs: Any,
    ) -> HttpResponseBase | None:
        refused = super().process_view(request, view_func, view_args, view_kwargs)
        fragment = request.headers.get("HX-Request") == "true"
        if refused is None or (request.method in SAFE and not fragment):
            return refused
        back = page_of(request) or reverse("home")
        if fragment:
            context = {
                "title": _("You are signed out"),
                "message": _("What you typed stays on this page and stands here again after you sign in."),
                "url": f"{reverse('account_login')}?{urlencode({'next': back})}",
                "url_text": _("Sign in"),
            }  # fmt: skip
            return render(request, "core/error_fragment.html", context, status=401)
        messages.warning(
            request,
            _(
                "You were signed out before this was sent, and nothing was changed. Sign in: what you typed will stand "
                "on its page again."
            ),
        )
        return redirect_to_login(back)
