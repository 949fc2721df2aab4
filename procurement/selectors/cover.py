"""Which units are under warranty on a day, for how long, and which are not."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from django.db import models
from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext_lazy as _

from procurement.models import Asset, AssetWarranty
from procurement.states import GONE_ASSET

WARN_DAYS = 90


class Cover(models.TextChoices):
    """A unit's warranty on one day."""

    COVERED = "covered", _("Covered")
    EXPIRING = "expiring", _("Expires soon")
    NOT_STARTED = "not_started", _("Not started yet")
    NONE = "none", _("Not covered")


def with_cover(rows: QuerySet[Asset], day: date) -> QuerySet[Any]:
    """`rows` with `covered_until` (last covered day of what covers `day`, else null), `cover_waits` (a contract that
    has not started) and `cover_ended` (last covered day of what is over)."""
    mine = AssetWarranty.objects.filter(asset=OuterRef("pk")).order_by()

    def last(filtered: Any) -> Subquery:
        return Subquery(
            filtered.values("asset").annotate(last=Max("ends_on")).values("last"),
            output_field=models.DateField(null=True),
        )

    return rows.annotate(
        covered_until=last(mine.filter(starts_on__lte=day, ends_on__gte=day)),
        cover_waits=Exists(mine.filter(Q(starts_on=None) | Q(starts_on__gt=day))),
        cover_ended=last(mine.filter(ends_on__lt=day)),
    )


def cover_filter(rows: QuerySet[Any], state: str, day: date) -> QuerySet[Any]:
    """Rows of `with_cover` in one state. Units that are gone for good need no cover."""
    present = ~Q(status__in=GONE_ASSET)
    match state:
        case Cover.COVERED:
            return rows.exclude(covered_until=None)
        case Cover.EXPIRING:
            soon = day + timedelta(days=WARN_DAYS)
            return rows.filter(present, covered_until__lte=soon, cover_waits=False)
        case Cover.NOT_STARTED:
            return rows.filter(covered_until=None, cover_waits=True)
        case Cover.NONE:
            return rows.filter(present, covered_until=None, cover_waits=False)
    return rows


def cover_of(asset: Any, day: date) -> Cover:
    """The state of a row of `with_cover`."""
    if asset.covered_until is None:
        return Cover.NOT_STARTED if asset.cover_waits else Cover.NONE
    if asset.covered_until <= day + timedelta(days=WARN_DAYS) and not asset.cover_waits:
        return Cover.EXPIRING
    return Cover.COVERED
