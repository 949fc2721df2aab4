"""Telling people: one Notice per person and matter, shown in the page, mailed in a digest after commit."""

from __future__ import annotations

import smtplib
from collections.abc import Iterable
from datetime import timedelta

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import models, transaction
from django.db.models import F
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext, ngettext

from core.audit import object_type
from core.messages import Message
from core.models import Notice, StoredFile, User

log = structlog.get_logger(__name__)

# One digest per person in this window.
DIGEST = timedelta(minutes=15)
# A sender that has not finished by then is taken for dead.
LEASE = timedelta(minutes=5)
MAX_ATTACHED = 8 * 1024 * 1024  # [B] what mail servers take without argument
RETRY_BASE = timedelta(minutes=2)
MAX_BACKOFF = timedelta(hours=6)


def notify(
    recipients: Iterable[User],
    event: str,
    *,
    on: models.Model,
    message: Message,
    url: str = "",
    revision: str = "",
    mail: bool = True,
    attachment: StoredFile | None = None,
) -> None:
    """Tell each active recipient once per (event, object, revision)."""
    now = timezone.now()
    rows = [
        Notice(
            recipient=user,
            event=event,
            object_type=object_type(on),
            object_id=str(on.pk),
            revision=revision,
            message=message.to_json(),
            url=url,
            attachment=attachment,
            mail_at=now if mail else None,
        )
        for user in {user.pk: user for user in recipients if user.is_active}.values()
    ]
    Notice.objects.bulk_create(rows, ignore_conflicts=True)


def send_due() -> int:
    """Send each person what is waiting, as one mail, unless they had one within the digest window. Returns mails sent.

    Rows are leased under a lock before the mail goes out, so that two senders do not both mail them; a sender that dies
    lets the lease run out. A mail server that is down delays the rows with a growing pause; none is dropped.
    """
    now = timezone.now()
    waiting = (
        Notice.objects.filter(mailed_at=None, mail_at__lte=now)
        .exclude(recipient__notices__mailed_at__gt=now - DIGEST)
        .order_by("recipient_id")
        .values_list("recipient_id", flat=True)
        .distinct()
    )
    return sum(_send_digest(user_id) for user_id in list(waiting))


@transaction.atomic
def _lease(user_id: int) -> tuple[User, list[Notice]]:
    user = User.objects.select_for_update().get(pk=user_id)
    now = timezone.now()
    if Notice.objects.filter(recipient=user, mailed_at__gt=now - DIGEST).exists():
        return user, []  # another sender was here first
    due = Notice.objects.filter(recipient=user, mailed_at=None, mail_at__lte=now)
    if not user.is_active:
        due.update(mail_at=None)
        return user, []
    rows = list(due.select_related("attachment").order_by("id"))
    Notice.objects.filter(pk__in=[row.pk for row in rows]).update(
        mail_at=now + LEASE, attempts=F("attempts") + 1
    )
    return user, rows


def _mail(user: User, subject: str, body: str, rows: list[Notice]) -> EmailMessage:
    """One mail; files ride along up to MAX_ATTACHED, the rest is behind the links."""
    mail = EmailMessage(subject, body, None, [user.email])
    room = MAX_ATTACHED
    for row in rows:
        stored = row.attachment
        if stored is None or stored.size > room:
            continue
        with stored.file.open("rb") as content:
            mail.attach(stored.name, content.read(), stored.content_type)
        room -= stored.size
    return mail


def _send_digest(user_id: int) -> int:
    user, rows = _lease(user_id)
    if not rows:
        return 0
    with translation.override(user.language or settings.LANGUAGE_CODE):
        items = [
            {
                "text": Message.from_json(row.message).render(gettext),
                "url": f"{settings.SITE_URL}{row.url}",
            }
            for row in rows
        ]
        subject = (
            items[0]["text"]
            if len(items) == 1
            else ngettext("%(n)s matter for you", "%(n)s matters for you", len(items))
            % {"n": len(items)}
        )
        body = render_to_string("core/digest.txt", {"user": user, "items": items})
    leased = Notice.objects.filter(pk__in=[row.pk for row in rows])
    try:
        _mail(user, " ".join(subject.split())[:160], body, rows).send()
    except (OSError, smtplib.SMTPException) as error:
        pause = min(RETRY_BASE * 2 ** min(rows[0].attempts, 10), MAX_BACKOFF)
        leased.update(last_error=str(error)[:300], mail_at=timezone.now() + pause)
        log.warning("outbox.delayed", user=user_id, rows=len(rows), error=str(error))
        return 0
    leased.update(mailed_at=timezone.now(), last_error="")
    return 1
