"""Telling people: one Notice per person and matter, shown in the page, mailed in a digest after commit.

Who has no account here is written to once per matter (`post`), by the same sender with the same pauses.
"""

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
from core.models import Notice, OutsideMail, StoredFile, User

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


def post(
    event: str,
    *,
    on: models.Model,
    recipient: str,
    address: str,
    subject: str,
    body: str,
    reply_to: str = "",
    attachment: StoredFile | None = None,
) -> bool:
    """Put a mail to `recipient` outside into the outbox, in words that are final. False when there is one already."""
    _row, is_new = OutsideMail.objects.get_or_create(
        event=event,
        object_type=object_type(on),
        object_id=str(on.pk),
        recipient=recipient,
        defaults={
            "address": address,
            "subject": " ".join(subject.split())[:200],
            "body": body,
            "reply_to": reply_to,
            "attachment": attachment,
        },
    )
    return is_new


def posted(event: str, *, on: models.Model) -> dict[str, OutsideMail]:
    """Recipient → the mail to the outside of this event about `on`."""
    rows = OutsideMail.objects.filter(
        event=event, object_type=object_type(on), object_id=str(on.pk)
    )
    return {row.recipient: row for row in rows}


def send_due() -> int:
    """Send each person what is waiting, as one mail, unless they had one within the digest window, and each mail to the
    outside. Returns mails sent.

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
    outside = OutsideMail.objects.filter(mailed_at=None, mail_at__lte=now).values_list(
        "pk", flat=True
    )
    return sum(_send_digest(user_id) for user_id in list(waiting)) + sum(
        _send_outside(pk) for pk in list(outside)
    )


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
    _attach(mail, [row.attachment for row in rows])
    return mail


def _attach(mail: EmailMessage, files: Iterable[StoredFile | None]) -> None:
    room = MAX_ATTACHED
    for stored in files:
        if stored is None or stored.size > room:
            continue
        with stored.file.open("rb") as content:
            mail.attach(stored.name, content.read(), stored.content_type)
        room -= stored.size


@transaction.atomic
def _lease_outside(pk: int) -> OutsideMail | None:
    now = timezone.now()
    row = (
        OutsideMail.objects.select_for_update()
        .filter(pk=pk, mailed_at=None, mail_at__lte=now)
        .first()
    )
    if row is not None:
        row.mail_at, row.attempts = now + LEASE, row.attempts + 1
        row.save(update_fields=["mail_at", "attempts"])
    return row


def _send_outside(pk: int) -> int:
    row = _lease_outside(pk)
    if row is None:
        return 0  # another sender was here first
    mail = EmailMessage(
        row.subject,
        row.body,
        None,
        [row.address],
        reply_to=[row.reply_to] if row.reply_to else None,
    )
    try:
        _attach(mail, [row.attachment])
        mail.send()
    except (OSError, smtplib.SMTPException) as error:
        row.last_error, row.mail_at = str(error)[:300], timezone.now() + _pause(row.attempts)
        row.save(update_fields=["last_error", "mail_at"])
        log.warning("outbox.delayed", outside=row.pk, error=str(error))
        return 0
    row.mailed_at, row.last_error = timezone.now(), ""
    row.save(update_fields=["mailed_at", "last_error"])
    return 1


def _pause(attempts: int) -> timedelta:
    """Before the next try; it grows with their number."""
    doubled: int = 2 ** min(attempts, 10)
    return min(RETRY_BASE * doubled, MAX_BACKOFF)


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
        leased.update(
            last_error=str(error)[:300], mail_at=timezone.now() + _pause(rows[0].attempts)
        )
        log.warning("outbox.delayed", user=user_id, rows=len(rows), error=str(error))
        return 0
    leased.update(mailed_at=timezone.now(), last_error="")
    return 1
