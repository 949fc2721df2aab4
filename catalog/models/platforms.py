"""Servers and racks that carry accelerators."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from catalog.models.accelerators import Accelerator
from catalog.models.provenance import Origin, Revision


class ServerPlatform(models.Model):
    """One kind of server. Its figures are in the revision `current`."""

    slug = models.SlugField(_("short name"), max_length=100, unique=True)
    name = models.CharField(_("name"), max_length=120)
    accelerator = models.ForeignKey(
        Accelerator,
        on_delete=models.PROTECT,
        related_name="platforms",
        verbose_name=_("accelerator"),
    )
    accelerator_count = models.PositiveSmallIntegerField(_("accelerators"))
    current = models.ForeignKey(
        "PlatformSpec", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )
    reference = models.ForeignKey(
        "PlatformSpec", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )

    class Meta:
        verbose_name = _("server platform")
        verbose_name_plural = _("server platforms")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(accelerator_count__gte=1), name="platform_has_accelerators"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("platform-detail", args=[self.slug])


class PlatformSpec(Revision):
    """Power, space and parts of a platform as known on a day."""

    platform = models.ForeignKey(ServerPlatform, on_delete=models.PROTECT, related_name="specs")
    max_power = models.FloatField(_("highest power"), null=True, blank=True)  # [W]
    typical_power_low = models.FloatField(_("usual power, from"), null=True, blank=True)  # [W]
    typical_power_high = models.FloatField(_("usual power, to"), null=True, blank=True)  # [W]
    rack_units = models.FloatField(_("rack units"), null=True, blank=True)
    weight = models.FloatField(_("weight"), null=True, blank=True)  # [kg]
    power_supplies = models.CharField(_("power supplies"), max_length=100, blank=True)
    cooling = models.CharField(_("cooling"), max_length=100, blank=True)
    fabric = models.CharField(_("accelerator fabric"), max_length=100, blank=True)
    nics = models.CharField(_("network cards"), max_length=100, blank=True)
    host = models.CharField(_("CPU and memory"), max_length=100, blank=True)

    FIGURES = (
        "max_power", "typical_power_low", "typical_power_high", "rack_units", "weight", "power_supplies", "cooling",
        "fabric", "nics", "host",
    )  # fmt: skip

    class Meta:
        verbose_name = _("platform figures")
        verbose_name_plural = _("platform figures")
        ordering = ["platform", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["platform", "number"], name="platform_revision"),
            models.CheckConstraint(
                condition=Q(typical_power_low__isnull=True)
                | Q(typical_power_high__gte=F("typical_power_low")),
                name="platform_power_range",
            ),
            models.CheckConstraint(
                condition=Q(origin=Origin.REFERENCE) | ~Q(reason=""),
                name="platform_correction_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.platform} · {self.number}"
