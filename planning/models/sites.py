"""Machine rooms of the organisation: what each can carry and what is taken already."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import CURRENCY_CHOICES


class SiteQuerySet(models.QuerySet["Site"]):
    def in_use(self) -> SiteQuerySet:
        """Those that bought servers may go to."""
        return self.filter(active=True)


class Site(models.Model):
    """One machine room. Prices left empty are taken from the cost defaults, and a study says so."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    country = models.CharField(
        _("country"), max_length=2, blank=True
    )  # ISO code; empty: the organisation's
    power_kw = models.FloatField(_("IT power (kW)"), validators=[MinValueValidator(0)])
    used_power_kw = models.FloatField(
        _("of it in use (kW)"), default=0, validators=[MinValueValidator(0)]
    )
    cooling_kw = models.FloatField(_("cooling (kW)"), validators=[MinValueValidator(0)])
    used_cooling_kw = models.FloatField(
        _("of it in use, cooling (kW)"), default=0, validators=[MinValueValidator(0)]
    )
    racks = models.PositiveIntegerField(_("racks"))
    used_racks = models.PositiveIntegerField(_("of them in use"), default=0)
    kw_per_rack = models.FloatField(_("power of one rack (kW)"), validators=[MinValueValidator(0)])
    units_per_rack = models.PositiveSmallIntegerField(_("height units of one rack"), default=42)
    floor_kg_per_rack = models.FloatField(
        _("floor load (kg per rack)"), null=True, blank=True, validators=[MinValueValidator(0)]
    )
    liquid_cooling = models.BooleanField(_("liquid cooling"), default=False)
    pue = models.FloatField(_("PUE"), null=True, blank=True)
    currency = models.CharField(_("currency"), max_length=3, choices=CURRENCY_CHOICES, blank=True)
    charge_per_kw_month = models.DecimalField(
        _("cost of a kW a month, without electricity"),
        max_digits=12,
        decimal_places=2,
        null=True,
        blank=True,
    )
    tariff_per_kwh = models.DecimalField(
        _("electricity per kWh"), max_digits=10, decimal_places=4, null=True, blank=True
    )
    active = models.BooleanField(_("takes new servers"), default=True)
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(default=timezone.now)

    objects = SiteQuerySet.as_manager()

    # What is measured and what it costs; the rest names the row.
    FIGURES = (
        "country", "power_kw", "used_power_kw", "cooling_kw", "used_cooling_kw", "racks", "used_racks", "kw_per_rack",
        "units_per_rack", "floor_kg_per_rack", "liquid_cooling", "pue", "currency", "charge_per_kw_month",
        "tariff_per_kwh", "active",
    )  # fmt: skip

    class Meta:
        verbose_name = _("site")
        verbose_name_plural = _("sites")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(used_power_kw__gte=0, used_power_kw__lte=F("power_kw"))
                & Q(used_cooling_kw__gte=0, used_cooling_kw__lte=F("cooling_kw"))
                & Q(used_racks__lte=F("racks")),
                name="site_used_within",
            ),
            models.CheckConstraint(condition=Q(pue=None) | Q(pue__range=(1, 3)), name="site_pue"),
            models.CheckConstraint(
                condition=~Q(currency="") | Q(charge_per_kw_month=None, tariff_per_kwh=None),
                name="site_prices_have_currency",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("site-detail", args=[self.pk])
