"""The plan that was chosen for a revision: how many cards of what, how paid, for how much."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from catalog.reference import accelerator_label
from core.models import CURRENCY_CHOICES, User
from core.money import Money
from planning.models.requests import RequestRevision
from planning.models.studies import Study


class PaymentChoice(models.TextChoices):
    """How capacity is paid for (the values of economics.types.PaymentMode, and a mix of them)."""

    ON_DEMAND = "on_demand", _("On demand")
    SPOT = "spot", _("Spot")
    RESERVED_1Y = "reserved_1y", _("Reserved, 1 year")
    RESERVED_3Y = "reserved_3y", _("Reserved, 3 years")
    SUBSCRIPTION = "subscription", _("Subscription")
    OWNED = "owned", _("Bought")
    COLOCATED = "colocated", _("Bought, in a colocation")
    LEASED = "leased", _("Leased")
    MIXED = "mixed", _("A mix")
    REUSED = "reused", _("Already owned")


class SpendKind(models.TextChoices):
    """Which budget pays."""

    CLOUD = "cloud", pgettext_lazy("budget", "Cloud")
    PURCHASE = "purchase", pgettext_lazy("budget", "Purchase")


PURCHASE_MODES = frozenset({PaymentChoice.OWNED, PaymentChoice.COLOCATED})


class PlanChoice(models.Model):
    """One plan of one study, fixed for one revision with the rate and the day on which it was converted."""

    revision = models.OneToOneField(RequestRevision, on_delete=models.PROTECT, related_name="plan")
    study = models.ForeignKey(Study, on_delete=models.PROTECT, null=True, related_name="choices")
    plan_key = models.CharField(max_length=160)
    accelerator_slug = models.CharField(_("accelerator"), max_length=80)
    cards = models.PositiveIntegerField(_("accelerators"))
    servers = models.PositiveIntegerField(_("servers"), null=True, blank=True)
    mode = models.CharField(_("payment"), max_length=14, choices=PaymentChoice.choices)
    spend_kind = models.CharField(_("budget"), max_length=10, choices=SpendKind.choices)
    amount = models.DecimalField(_("amount"), max_digits=18, decimal_places=6)
    currency = models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES)
    base_amount = models.DecimalField(
        max_digits=18, decimal_places=6
    )  # in the organisation's currency
    base_currency = models.CharField(max_length=3, choices=CURRENCY_CHOICES)
    rate = models.DecimalField(max_digits=18, decimal_places=8)  # one `currency` in `base_currency`
    rate_date = models.DateField()
    rate_source = models.CharField(max_length=200, blank=True)
    summary = models.JSONField(default=dict, blank=True)
    chosen_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    chosen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("chosen plan")
        verbose_name_plural = _("chosen plans")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(amount__gte=0), name="plan_amount_not_negative"
            ),
            models.CheckConstraint(condition=models.Q(cards__gte=1), name="plan_cards"),
            models.CheckConstraint(condition=models.Q(rate__gt=0), name="plan_rate_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.cards} × {accelerator_label(self.accelerator_slug)}"

    @property
    def money(self) -> Money:
        return Money(self.amount, self.currency)

    @property
    def base_money(self) -> Money:
        return Money(self.base_amount, self.base_currency)

    @property
    def tax(self) -> Money | None:
        """Of the amount; None where the study knew of no tax on it."""
        told = self.summary.get("tax")
        return None if not told else Money(Decimal(told["amount"]), self.currency)

    def compute_hash(self) -> str:
        """SHA-256 of what an approver agrees to: what is bought and for how much, at which rate."""
        body = [
            self.plan_key, self.accelerator_slug, self.cards, self.servers, self.mode, self.spend_kind,
            f"{self.amount:.6f}", self.currency, f"{self.base_amount:.6f}", self.base_currency,
            f"{self.rate:.8f}", self.rate_date.isoformat(),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(body, separators=(",", ":")).encode()).hexdigest()
