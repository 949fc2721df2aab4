"""What vendors conceded, round by round: who, when, from what to what, and what it is worth."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import User
from core.money import Money
from procurement.models.base import amount_field, currency_field
from procurement.models.rfqs import Rfq
from procurement.models.vendors import Vendor

MOST_ROUNDS = 20


class Subject(models.TextChoices):
    PRICE = "price", pgettext_lazy("negotiation", "Price")
    WARRANTY = "warranty", _("Warranty")
    BUNDLE = "bundle", _("Bundle")
    DEPLOYMENT = "deployment", _("Deployment and freight")
    SAMPLE = "sample", _("Sample test before payment")
    DELIVERY = "delivery", _("Lead time")
    PAYMENT = "payment", _("Payment terms")
    OTHER = "other", _("Other")


class Concession(models.Model):
    """One thing that a vendor gave way on in one round. Never changed."""

    rfq = models.ForeignKey(Rfq, on_delete=models.PROTECT, related_name="concessions")
    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="concessions")
    round = models.PositiveSmallIntegerField(
        _("round"), validators=[MinValueValidator(1), MaxValueValidator(MOST_ROUNDS)]
    )
    subject = models.CharField(_("subject"), max_length=10, choices=Subject.choices)
    from_value = models.CharField(_("from"), max_length=200)
    to_value = models.CharField(_("to"), max_length=200)
    amount = amount_field(_("worth"), null=True, blank=True)  # null: not known, never 0
    currency = currency_field()
    conceded_by = models.CharField(_("who gave way"), max_length=120)
    agreed_on = models.DateField(_("agreed on"))
    recorded_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    recorded_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("concession")
        verbose_name_plural = _("concessions")
        ordering = ["rfq_id", "round", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(round__range=(1, MOST_ROUNDS)), name="concession_round"
            ),
            models.CheckConstraint(
                condition=Q(amount=None) | Q(amount__gt=0), name="concession_amount"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} {self.round} {self.vendor}"

    @property
    def worth(self) -> Money | None:
        return None if self.amount is None else Money(self.amount, self.currency)
