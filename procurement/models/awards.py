"""The choice of a winner, or of several by quantity, with its written reason."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from core.machines import transitions
from core.models import User
from procurement.models.base import Versioned, quantity_field, within_teams
from procurement.models.quotes import QuoteLine
from procurement.models.rfqs import Rfq
from procurement.states import AWARD_RULES, AwardStatus


class AwardQuerySet(models.QuerySet["Award"]):
    def visible_to(self, user: User) -> AwardQuerySet:
        return within_teams(self, user, "rfq__lines__request")  # type: ignore[no-any-return]


class Award(Versioned):
    """A proposal to buy, and the decision on it. At most one stands per RFQ."""

    Status = AwardStatus
    TRANSITIONS = transitions(AWARD_RULES)
    RULES = AWARD_RULES

    rfq = models.ForeignKey(Rfq, on_delete=models.PROTECT, related_name="awards")
    status = models.CharField(
        _("state"), max_length=10, choices=AwardStatus.choices, default=AwardStatus.PROPOSED
    )
    reason = models.TextField(_("reason"))
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    decision_reason = models.TextField(blank=True)
    sheet = models.JSONField(default=list)  # the comparison as it was when proposed
    quote_hashes = models.JSONField(default=dict)  # quote id → content hash

    objects = AwardQuerySet.as_manager()

    class Meta:
        verbose_name = _("award")
        verbose_name_plural = _("awards")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["rfq"],
                condition=Q(status__in=["proposed", "approved"]),
                name="one_award_per_rfq",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="award_has_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} · {self.get_status_display()}"

    @property
    def trail_label(self) -> str:
        """Its name in the audit trail, which knows no language."""
        return self.rfq.number

    def get_absolute_url(self) -> str:
        return reverse("rfq-detail", args=[self.rfq_id])


class AwardLine(models.Model):
    """So many items of one quote line."""

    award = models.ForeignKey(Award, on_delete=models.CASCADE, related_name="lines")
    quote_line = models.ForeignKey(QuoteLine, on_delete=models.PROTECT, related_name="award_lines")
    quantity = quantity_field()

    class Meta:
        verbose_name = _("award line")
        verbose_name_plural = _("award lines")
        ordering = ["award_id", "quote_line_id"]
        constraints = [
            models.UniqueConstraint(fields=["award", "quote_line"], name="award_line_once"),
            models.CheckConstraint(condition=Q(quantity__gt=0), name="award_line_quantity"),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.quote_line}"
