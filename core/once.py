"""A form that is sent twice makes one thing: the second sending leads to what the first made.

`{% csrf_token %}` of this project (core/templatetags/ui.py) gives every form a one-time token. The middleware keeps it
as a unique key in the same transaction as what the form makes: of eight sendings at once one does the work, the others
wait for its commit and are led where it led. A refused form keeps no key, whether it is shown again or told of on
another page: it can be mended and sent again. What was typed counts too, so a form that was changed after going back in
the browser is a new one. Only views of the product are guarded: those of log-in and of support have rules of their own
(asking for the password again), and what is typed there is nobody's to keep, not even as a digest.

The API has the same by the header Idempotency-Key (core/drf.py), in the same table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _

from core.middleware import DomainErrorMiddleware
from core.models import IdempotencyKey, User

FIELD = "once"
OURS = ("core.", "catalog.", "planning.", "procurement.", "config.")  # modules of views
TOKEN = re.compile(r"[A-Za-z0-9_-]{20,40}")
KEEP = timedelta(days=30)
View = Callable[..., HttpResponse]


def claim(*, user: User | None, key: str, path: str, digest: str) -> tuple[IdempotencyKey, bool]:
    """The row of `key` and whether it is new. Waits for another transaction that holds the same key. Call it in one.

    Without a `user` (a vendor with its key) `key` names who sent it.
    """
    try:
        with transaction.atomic():
            row = IdempotencyKey.objects.create(
                user=user, key=key, path=path[:300], body_sha256=digest
            )
    except IntegrityError:
        return IdempotencyKey.objects.get(user=user, key=key), False
    return row, True


def repeatable(view: View) -> View:
    """Mark a view that guards against repeats by itself, or takes files too large to hold a transaction over."""
    view.is_repeatable = True  # type: ignore[attr-defined]
    return view


def forget_old() -> int:
    """Drop keys that nobody will send again. Returns how many."""
    return IdempotencyKey.objects.filter(created_at__lt=timezone.now() - KEEP).delete()[0]


class OnceMiddleware:
    """Runs a page's POST in one transaction with its form's token. Fragments (htmx) make nothing and are left alone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.refusals = DomainErrorMiddleware(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: View, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        user = request.user
        if (
            request.method != "POST"
            or getattr(view, "is_repeatable", False)
            or not view.__module__.startswith(OURS)
            or request.headers.get("HX-Request") == "true"
            or request.path.startswith("/api/")
            or not isinstance(user, User)
            or not TOKEN.fullmatch(request.POST.get(FIELD, ""))
        ):
            return None
        try:
            return self._once(request, user, lambda: view(request, *args, **kwargs))
        except Exception as error:
            # A view called here is out of Django's reach for process_exception; a defect goes on to the 500 page.
            response = self.refusals.process_exception(request, error)
            if response is None:
                raise
            return response

    def _once(
        self, request: HttpRequest, user: User, work: Callable[[], HttpResponse]
    ) -> HttpResponse:
        digest = _digest(request)
        key = f"form:{request.POST[FIELD]}:{digest[:32]}"
        with transaction.atomic():
            row, is_new = claim(user=user, key=key, path=request.path, digest=digest)
            if not is_new:
                messages.info(request, _("This form had been sent before and was taken once."))
                kept: dict[str, str] = row.response or {}
                return HttpResponseRedirect(kept.get("location", "/"))
            response = work()
            # A choice kept in a cookie (language, colours) must be answered anew each time.
            done = response.status_code in (302, 303) and not response.cookies
            if done and not told_a_refusal(request):
                row.status = response.status_code
                row.response = {"location": response["Location"]}
                row.save(update_fields=["status", "response"])
            else:
                row.delete()
        return response


def told_a_refusal(request: HttpRequest) -> bool:
    """Whether the view said an error, to be read on the page that it leads to."""
    # Reading the messages in the public way would use them up before the page shows them.
    queued = getattr(messages.get_messages(request), "_queued_messages", [])
    return any(message.level >= messages.ERROR for message in queued)


def _digest(request: HttpRequest) -> str:
    """Keyed digest of the address and of what was typed and attached."""
    typed = [
        (name, values)
        for name, values in sorted(request.POST.lists())
        if name not in (FIELD, "csrfmiddlewaretoken")
    ]
    return content_digest(request.get_full_path() + repr(typed), request.FILES)


def content_digest(text: str, files: MultiValueDict[str, Any]) -> str:
    """Digest of `text` and of each file's name and content, under the installation's secret: what was typed cannot be
    guessed from it. Leaves the files at their beginning."""
    digest = salted_hmac("core.once", text, algorithm="sha256")
    for name, uploads in sorted(files.lists()):
        for upload in uploads:
            digest.update(repr((name, upload.name, upload.size)).encode())
            for chunk in upload.chunks():
                digest.update(chunk)
            upload.seek(0)
    return digest.hexdigest()
