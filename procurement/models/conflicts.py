"""What each person who takes part in an award said about conflicts of interest. Kept for good."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import User
from procurement.models.rfqs import Rfq
from procurement.models.vendors import Vendor


class ConflictStatement(models.Model):
    """One statement of one person on one RFQ. Conflicts add up until the person states that there is none.

    A conflict that names its vendor holds on every RFQ in which that vendor quotes.
    """

    rfq = models.ForeignKey(Rfq, on_delete=models.PROTECT, related_name="statements")
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    has_conflict = models.BooleanField(_("has a conflict of interest"))
    vendor = models.ForeignKey(
        Vendor, on_delete=models.PROTECT, null=True, blank=True, related_name="+",
        verbose_name=_("with which vendor"),
    )  # fmt: skip
    text = models.TextField(_("what it is"), blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("conflict-of-interest statement")
        verbose_name_plural = _("conflict-of-interest statements")
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(has_conflict=False) | ~Q(text=""), name="conflict_is_named"
            ),
            models.CheckConstraint(
                condition=Q(has_conflict=True) | Q(vendor=None), name="no_conflict_names_no_vendor"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} {self.person}"
