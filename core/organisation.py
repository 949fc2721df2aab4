"""The organisation's calendar: what day and quarter it is where the organisation is."""

from __future__ import annotations

from datetime import date, datetime, time

from django.utils import timezone

from core.errors import DomainError
from core.messages import msg
from core.models import Organisation
from core.quarters import Quarter


class NotSetUp(DomainError):
    """No organisation exists yet."""


def organisation() -> Organisation:
    """The one organisation. Raises NotSetUp before set-up."""
    found = Organisation.objects.first()
    if found is None:
        raise NotSetUp(
            msg(
                "This installation has no organisation yet. Run: manage.py load_demo_history or set_up."
            )
        )
    return found


def today(org: Organisation | None = None) -> date:
    """Today's date in the organisation's zone."""
    return timezone.now().astimezone((org or organisation()).zone).date()


def local_day(instant: datetime, org: Organisation | None = None) -> date:
    """The day of `instant` on the organisation's clock."""
    return instant.astimezone((org or organisation()).zone).date()


def day_start(day: date, org: Organisation | None = None) -> datetime:
    """The first moment of `day` on the organisation's clock."""
    return datetime.combine(day, time.min, (org or organisation()).zone)


def quarter_at(instant: datetime | None = None, org: Organisation | None = None) -> Quarter:
    """The fiscal quarter of `instant` (now when None) in the organisation's zone."""
    org = org or organisation()
    return Quarter.at(instant or timezone.now(), org.zone, org.fiscal_start_month)
