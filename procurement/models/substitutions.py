"""Another part in place of the one ordered, with the buyer's consent; and what is drawn of cloud commitments."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.machines import transitions
from core.models import User
from procurement.models.base import Versioned, quantity_field, within_teams
from procurement.models.orders import OrderLine
from procurement.states import SUBSTITUTION_RULES, SubstitutionStatus


class SubstitutionQuerySet(models.QuerySet["Substitution"]):
    def visible_to(self, user: User) -> SubstitutionQuerySet:
        return within_teams(self, user, "order_line__order__lines__request")  # type: ignore[no-any-return]


class Substitution(Versioned):
    """A part that the vendor wants to send instead. Without consent it is not received."""

    Status = SubstitutionStatus
    TRANSITIONS = transitions(SUBSTITUTION_RULES)
    RULES = SUBSTITUTION_RULES

    order_line = models.ForeignKey(
        OrderLine, on_delete=models.PROTECT, related_name="substitutions"
    )
    part_number = models.CharField(_("part number"), max_length=80)
    folded_part = models.CharField(max_length=80, editable=False)
    description = models.CharField(_("description"), max_length=300)
    reason = models.TextField(_("why the vendor asks for it"))
    status = models.CharField(
        _("state"), max_length=10, choices=SubstitutionStatus.choices,
        default=SubstitutionStatus.PROPOSED,
    )  # fmt: skip
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    decision_reason = models.TextField(blank=True)

    objects = SubstitutionQuerySet.as_manager()

    class Meta:
        verbose_name = _("substitution")
        verbose_name_plural = _("substitutions")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["order_line", "folded_part"],
                condition=Q(status__in=["proposed", "consented"]),
                name="substitution_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.order_line} → {self.part_number}"

    @property
    def trail_label(self) -> str:
        """Its name in the audit trail, which knows no language."""
        return f"{self.order_line.order.trail_label} {self.order_line.position} {self.part_number}"

    def get_absolute_url(self) -> str:
        return self.order_line.order.get_absolute_url()


class DrawDown(models.Model):
    """How much of a cloud commitment was used in one month, in the unit of its line."""

    order_line = models.ForeignKey(OrderLine, on_delete=models.PROTECT, related_name="draws")
    month = models.DateField(_("month"))  # its first day
    quantity = quantity_field()
    recorded_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")

    class Meta:
        verbose_name = _("draw-down")
        verbose_name_plural = _("draw-downs")
        ordering = ["order_line_id", "month"]
        constraints = [
            models.UniqueConstraint(fields=["order_line", "month"], name="draw_down_once_a_month"),
            models.CheckConstraint(condition=Q(quantity__gt=0), name="draw_down_quantity"),
            models.CheckConstraint(condition=Q(month__day=1), name="draw_down_first_day"),
        ]

    def __str__(self) -> str:
        return f"{self.order_line} {self.month:%Y-%m}"
