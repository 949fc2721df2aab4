"""Cards that are given to a request from one day to another."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from catalog.reference import accelerator_label
from core.models import Team, User
from planning.models.requests import CapacityRequest, visible_teams
from planning.states import ALLOCATION_RULES, AllocationStatus, transitions


class CapacityPool(models.Model):
    """All cards of one accelerator. Its row is what bookings lock."""

    accelerator_slug = models.CharField(_("accelerator"), max_length=80, unique=True)

    class Meta:
        verbose_name = _("capacity pool")
        verbose_name_plural = _("capacity pools")
        ordering = ["accelerator_slug"]

    def __str__(self) -> str:
        return accelerator_label(self.accelerator_slug)


class AllocationQuerySet(models.QuerySet["Allocation"]):
    def visible_to(self, user: User) -> AllocationQuerySet:
        """Allocations of the teams that `user` may see."""
        teams = visible_teams(user)
        return self if teams is None else self.filter(team__in=teams)

    def standing(self) -> AllocationQuerySet:
        return self.filter(status=AllocationStatus.BOOKED)


class Allocation(models.Model):
    """Cards of a pool for one request; both days included. Released early, its last day is the day of release."""

    Status = AllocationStatus
    TRANSITIONS = transitions(ALLOCATION_RULES)

    pool = models.ForeignKey(CapacityPool, on_delete=models.PROTECT, related_name="allocations")
    request = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, related_name="allocations"
    )
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="allocations")
    cards = models.PositiveIntegerField(_("accelerators"))
    first_day = models.DateField(_("first day"))
    last_day = models.DateField(_("last day"))
    status = models.CharField(
        _("state"), max_length=10, choices=AllocationStatus.choices, default=AllocationStatus.BOOKED
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    booked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    booked_at = models.DateTimeField(default=timezone.now)
    underused_since = models.DateField(null=True, blank=True)  # when its team was told

    objects = AllocationQuerySet.as_manager()

    class Meta:
        verbose_name = pgettext_lazy("capacity", "allocation")
        verbose_name_plural = pgettext_lazy("capacity", "allocations")
        ordering = ["first_day", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(cards__gte=1), name="allocation_cards"),
            models.CheckConstraint(
                condition=Q(last_day__gte=F("first_day")), name="allocation_days"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request.reference} · {self.cards} × {self.pool}"
