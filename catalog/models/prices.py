"""What hardware cost: street prices and quotations seen, each a dated row."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from catalog.models.accelerators import Accelerator
from catalog.models.platforms import ServerPlatform
from catalog.models.provenance import AppendOnlyModel, Provenance
from core.models import CURRENCY_CHOICES


class PriceRecord(AppendOnlyModel, Provenance):
    """Price of one card or one platform, as a range (both ends equal when one figure was given)."""

    class Condition(models.TextChoices):
        NEW = "new", _("New")
        USED = "used", _("Used")
        UNSTATED = "unstated", _("Not stated")

    accelerator = models.ForeignKey(
        Accelerator,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="price_records",
        verbose_name=_("accelerator"),
    )
    platform = models.ForeignKey(
        ServerPlatform,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="price_records",
        verbose_name=_("server platform"),
    )
    low = models.DecimalField(_("unit price, from"), max_digits=18, decimal_places=2)
    high = models.DecimalField(_("unit price, to"), max_digits=18, decimal_places=2)
    currency = models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES)
    condition = models.CharField(
        _("condition"), max_length=10, choices=Condition.choices, default=Condition.UNSTATED
    )
    tax_included = models.BooleanField(_("tax included"), null=True, blank=True)

    class Meta:
        verbose_name = _("hardware price")
        verbose_name_plural = _("hardware prices")
        ordering = ["-as_of", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(accelerator__isnull=True, platform__isnull=False)
                | Q(accelerator__isnull=False, platform__isnull=True),
                name="hardware_price_of_one_thing",
            ),
            models.CheckConstraint(
                condition=Q(low__gt=0, high__gte=F("low")), name="hardware_price_range"
            ),
            models.UniqueConstraint(
                fields=["accelerator", "currency", "condition", "as_of", "source"],
                condition=Q(accelerator__isnull=False),
                name="card_price_once_a_day",
            ),
            models.UniqueConstraint(
                fields=["platform", "currency", "condition", "as_of", "source"],
                condition=Q(platform__isnull=False),
                name="platform_price_once_a_day",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.accelerator or self.platform} {self.low}–{self.high} {self.currency}"
