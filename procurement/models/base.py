"""What the rows of this app have in common."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import CURRENCY_CHOICES, Team, User
from core.roles import SEES_ALL, Role, has_role, team_ids

# Roles that take part in buying, when held in a team: they see what concerns their teams only.
BUYING_ROLES = (Role.APPROVER, Role.PROCUREMENT, Role.OPERATIONS, Role.FINANCE, Role.AUDITOR)


class Versioned(models.Model):
    """A row that is locked, compared by version and moved between states by services only."""

    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    created_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, editable=False, related_name="+"
    )
    status_since = models.DateTimeField(
        _("in this state since"), default=timezone.now, editable=False
    )

    class Meta:
        abstract = True


def sees_everything(user: User) -> bool:
    """Whether `user` holds a central role for the whole organisation."""
    return has_role(user, *SEES_ALL)


def buying_teams(user: User) -> frozenset[int]:
    """Teams in which `user` takes part in buying."""
    return team_ids(user, *BUYING_ROLES)


def within_teams(queryset: Any, user: User, path: str) -> Any:
    """Rows all of whose requests (related by `path`, e.g. `lines__request`) are of teams in which `user` buys.

    A row that also concerns another team's request would show that team's need: it stays hidden.
    """
    if sees_everything(user):
        return queryset
    teams = buying_teams(user)
    if not teams:
        return queryset.none()
    rows = queryset.model._base_manager
    own = rows.filter(**{f"{path}__team__in": teams})
    foreign = rows.filter(**{f"{path}__team__in": Team.objects.exclude(pk__in=teams)})
    return queryset.filter(pk__in=own.values("pk")).exclude(pk__in=foreign.values("pk"))


def currency_field(**options: Any) -> models.CharField[Any, Any]:
    return models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES, **options)


def unit_price_field(**options: Any) -> models.DecimalField[Any, Any]:
    """Price of one unit: six decimal places, as a price per GPU-second needs them."""
    return models.DecimalField(_("unit price"), max_digits=20, decimal_places=6, **options)


def quantity_field(**options: Any) -> models.DecimalField[Any, Any]:
    return models.DecimalField(_("quantity"), max_digits=14, decimal_places=3, **options)


def amount_field(label: Any, **options: Any) -> models.DecimalField[Any, Any]:
    """An amount at the currency's minor unit; three places hold every currency."""
    return models.DecimalField(label, max_digits=20, decimal_places=3, **options)


def tax_rate_field(**options: Any) -> models.DecimalField[Any, Any]:
    """A share: 0.13 is 13 per cent."""
    return share_field(_("tax rate"), **options)


def share_field(label: Any, **options: Any) -> models.DecimalField[Any, Any]:
    """A share: 0.13 is 13 per cent."""
    return models.DecimalField(label, max_digits=6, decimal_places=5, **options)
