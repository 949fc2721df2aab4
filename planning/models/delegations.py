"""One person standing in for another, for some days."""

from __future__ import annotations

from datetime import date

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import User


class DelegationQuerySet(models.QuerySet["Delegation"]):
    def active_on(self, day: date) -> DelegationQuerySet:
        """Those that hold on the local date `day`, both ends included."""
        return self.filter(first_day__lte=day, last_day__gte=day, revoked_at=None)

    def overlapping(self, first: date, last: date) -> DelegationQuerySet:
        return self.filter(first_day__lte=last, last_day__gte=first, revoked_at=None)


class Delegation(models.Model):
    """`delegate` decides for `principal` from `first_day` to `last_day` (dates where the organisation is).

    Only the principal's own authority passes on: what the principal holds by delegation does not.
    """

    principal = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="delegations_given", verbose_name=_("absent")
    )
    delegate = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="delegations_held", verbose_name=_("stand-in")
    )
    first_day = models.DateField(_("first day"))
    last_day = models.DateField(_("last day"))
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = DelegationQuerySet.as_manager()

    class Meta:
        verbose_name = _("delegation")
        verbose_name_plural = _("delegations")
        ordering = ["-first_day", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(last_day__gte=models.F("first_day")), name="delegation_days"
            ),
            models.CheckConstraint(
                condition=~models.Q(principal=models.F("delegate")), name="delegation_two_people"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.principal} → {self.delegate} ({self.first_day} – {self.last_day})"
