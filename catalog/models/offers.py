"""What clouds offer, and what each offer cost on which day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.utils.translation import gettext_lazy as _

from catalog.models.accelerators import Accelerator
from catalog.models.provenance import AppendOnlyModel, Provenance
from core.models import CURRENCY_CHOICES, AppendOnlyQuerySet
from core.money import Money


class CloudOffer(models.Model):
    """One instance type in one region of one cloud."""

    cloud = models.CharField(_("cloud"), max_length=40)
    region = models.CharField(_("region"), max_length=60)
    instance_type = models.CharField(_("instance type"), max_length=120)
    accelerator = models.ForeignKey(
        Accelerator,
        on_delete=models.PROTECT,
        related_name="offers",
        verbose_name=_("accelerator"),
    )
    accelerator_name = models.CharField(_("name in the source"), max_length=100)
    accelerator_count = models.PositiveSmallIntegerField(_("accelerators"))
    vcpu = models.PositiveIntegerField(_("vCPU"), null=True, blank=True)
    memory_gib = models.FloatField(_("host memory"), null=True, blank=True)  # [GiB]
    zones = models.PositiveSmallIntegerField(_("zones seen"), null=True, blank=True)
    complete = models.BooleanField(
        _("whole instance"),
        default=True,
        help_text=_("No: the price covers the accelerators only, the host is billed apart."),
    )

    class Meta:
        verbose_name = _("cloud offer")
        verbose_name_plural = _("cloud offers")
        ordering = ["cloud", "region", "instance_type"]
        constraints = [
            models.UniqueConstraint(
                fields=["cloud", "region", "instance_type", "accelerator"],
                name="offer_once_per_region",
            ),
            models.CheckConstraint(
                condition=Q(accelerator_count__gte=1), name="offer_has_accelerators"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cloud} {self.region} {self.instance_type}"


class OfferPriceQuerySet(AppendOnlyQuerySet):
    """Prices are added and read."""

    def latest(self, *, on: date | None = None) -> OfferPriceQuerySet:  # type: ignore[override]
        """The newest price of each offer, kind and term (as known `on` a day); older rows stay as history."""
        same = OfferPrice.objects.filter(
            offer=OuterRef("offer"), kind=OuterRef("kind"), term_months=OuterRef("term_months")
        )
        if on is not None:
            same = same.filter(as_of__lte=on)
        newest = same.order_by("-as_of", "-pk").values("pk")[:1]
        rows: OfferPriceQuerySet = self.filter(pk=Subquery(newest))
        return rows

    def with_unit_price(self) -> OfferPriceQuerySet:
        """Adds `unit_price`: the price of one accelerator for an hour, for sorting and filters."""
        price: Any = F("amount") * Decimal("1.0") / F("offer__accelerator_count")
        rows: OfferPriceQuerySet = self.annotate(
            unit_price=models.ExpressionWrapper(
                price, output_field=models.DecimalField(max_digits=18, decimal_places=6)
            )
        )
        return rows


class OfferPrice(AppendOnlyModel, Provenance):
    """What an instance cost an hour on a day. A new snapshot adds rows; nothing is overwritten."""

    class Kind(models.TextChoices):
        ON_DEMAND = "on_demand", _("On demand")
        SPOT = "spot", _("Spot")
        RESERVED = "reserved", _("Reserved")

    offer = models.ForeignKey(CloudOffer, on_delete=models.PROTECT, related_name="prices")
    kind = models.CharField(_("price kind"), max_length=12, choices=Kind.choices)
    term_months = models.PositiveSmallIntegerField(_("term in months"), default=0)
    amount = models.DecimalField(_("price per instance-hour"), max_digits=18, decimal_places=6)
    currency = models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES)
    quality = models.CharField(_("caution"), max_length=400, blank=True)
    snapshot = models.CharField(_("snapshot"), max_length=160, blank=True)

    objects = OfferPriceQuerySet.as_manager()  # type: ignore[misc]

    class Meta:
        verbose_name = _("offer price")
        verbose_name_plural = _("offer prices")
        ordering = ["-as_of", "-pk"]
        indexes = [
            models.Index(
                fields=["offer", "kind", "term_months", "-as_of", "-id"], name="offer_price_latest"
            )
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["offer", "kind", "term_months", "as_of", "source"],
                name="offer_price_once_a_day",
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="offer_price_positive"),
            models.CheckConstraint(
                condition=Q(kind="reserved", term_months__gt=0)
                | (~Q(kind="reserved") & Q(term_months=0)),
                name="offer_price_term",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.offer} · {self.get_kind_display()} · {self.amount} {self.currency}"

    @property
    def money(self) -> Money:
        """Price of the instance for an hour."""
        return Money(self.amount, self.currency)

    @property
    def per_accelerator(self) -> Decimal:
        """Price of one accelerator for an hour, six places."""
        return (self.amount / self.offer.accelerator_count).quantize(Decimal("0.000001"))
