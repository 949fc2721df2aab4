"""Mail: one digest per person and window, nothing lost, nothing twice."""

import smtplib
from datetime import timedelta

import pytest
import time_machine
from django.core import mail
from django.utils import timezone

from core import outbox
from core.messages import msg
from core.models import Notice

pytestmark = pytest.mark.django_db


def tell(user, team, n, revision=""):
    outbox.notify(
        [user],
        f"matter{n}.raised",
        on=team,
        message=msg("Matter %(n)s needs you", n=n),
        url=f"/x/{n}",
        revision=revision,
    )


def test_forty_matters_are_one_mail_and_a_second_run_sends_nothing(make_user, team):
    user = make_user()
    for n in range(40):
        tell(user, team, n)
    assert outbox.send_due() == 1
    assert outbox.send_due() == 0
    assert len(mail.outbox) == 1
    assert all(f"/x/{n}" in mail.outbox[0].body for n in range(40))


def test_the_same_matter_is_told_once(make_user, team):
    user = make_user()
    tell(user, team, 1)
    tell(user, team, 1)
    assert Notice.objects.count() == 1
    tell(user, team, 1, revision="2")
    assert Notice.objects.count() == 2


def test_a_second_digest_waits_for_the_window(make_user, team):
    user = make_user()
    tell(user, team, 1)
    outbox.send_due()
    tell(user, team, 2)
    assert outbox.send_due() == 0
    with time_machine.travel(timezone.now() + outbox.DIGEST + timedelta(seconds=1), tick=False):
        assert outbox.send_due() == 1
    assert len(mail.outbox) == 2


class DownBackend:
    def __init__(self, *args, **kwargs):
        pass

    def send_messages(self, messages):
        raise smtplib.SMTPServerDisconnected("server is down")


def test_a_mail_server_that_is_down_loses_nothing(make_user, team, settings):
    user = make_user()
    tell(user, team, 1)
    working = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = f"{__name__}.DownBackend"
    assert outbox.send_due() == 0
    row = Notice.objects.get()
    assert row.mailed_at is None
    assert "down" in row.last_error
    settings.EMAIL_BACKEND = working
    assert outbox.send_due() == 0, "the retry waits"
    with time_machine.travel(row.mail_at + timedelta(seconds=1), tick=False):
        assert outbox.send_due() == 1


def test_a_person_who_left_gets_no_mail(make_user, team):
    user = make_user()
    tell(user, team, 1)
    user.is_active = False
    user.save()
    assert outbox.send_due() == 0
    assert mail.outbox == []


def test_the_digest_speaks_the_reader_s_language(make_user, team):
    user = make_user(language="zh-hans")
    for n in range(2):
        tell(user, team, n)
    outbox.send_due()
    assert "事项" in mail.outbox[0].subject


def test_a_mail_to_the_outside_goes_once_and_survives_a_server_that_is_down(team, settings):
    def send(address="a@vendor.example"):
        return outbox.post(
            "letter.sent", on=team, recipient="vendor:1", address=address, subject="A\nletter",
            body="Words", reply_to="buyer@example.com",
        )  # fmt: skip

    assert send()
    assert not send("b@vendor.example")
    working = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = f"{__name__}.DownBackend"
    assert outbox.send_due() == 0
    row = outbox.posted("letter.sent", on=team)["vendor:1"]
    assert "down" in row.last_error
    settings.EMAIL_BACKEND = working
    assert outbox.send_due() == 0, "the retry waits"
    with time_machine.travel(row.mail_at + timedelta(seconds=1), tick=False):
        assert outbox.send_due() == 1
        assert outbox.send_due() == 0
    (sent,) = mail.outbox
    assert (sent.to, sent.subject, sent.reply_to) == (
        ["a@vendor.example"], "A letter", ["buyer@example.com"],
    )  # fmt: skip
