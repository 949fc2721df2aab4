"""Defaults of a cluster's cost of ownership: ranges with source, which an organisation replaces by its own."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from catalog.models.provenance import Origin, Revision


class TcoDefault(models.Model):
    """One parameter, e.g. ``pue.colocation``. Its value is in the revision `current`."""

    key = models.CharField(_("parameter"), max_length=80, unique=True)
    unit = models.CharField(_("unit"), max_length=40)
    current = models.ForeignKey(
        "TcoDefaultValue", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )
    reference = models.ForeignKey(
        "TcoDefaultValue", on_delete=models.PROTECT, null=True, related_name="+", editable=False
    )

    class Meta:
        verbose_name = _("cost default")
        verbose_name_plural = _("cost defaults")
        ordering = ["key"]

    def __str__(self) -> str:
        return self.key

    def get_absolute_url(self) -> str:
        return reverse("tco-detail", args=[self.pk])


class TcoDefaultValue(Revision):
    """Low, default and high as known on a day. Lists of one number, or of one per year or tier."""

    default = models.ForeignKey(TcoDefault, on_delete=models.PROTECT, related_name="values")
    low = models.JSONField(_("low"))
    value = models.JSONField(_("default"))
    high = models.JSONField(_("high"))

    FIGURES = ("low", "value", "high")

    class Meta:
        verbose_name = _("cost default value")
        verbose_name_plural = _("cost default values")
        ordering = ["default", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["default", "number"], name="tco_revision"),
            models.CheckConstraint(
                condition=Q(origin=Origin.REFERENCE) | ~Q(reason=""),
                name="tco_correction_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.default} · {self.number}"
