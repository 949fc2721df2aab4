"""A price file someone brought: shown row by row first, applied once."""

from __future__ import annotations

from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import StoredFile, User


class PriceImport(models.Model):
    """One uploaded price file and how it is read. The same choices are used for the preview and for applying."""

    class Target(models.TextChoices):
        OFFERS = "offers", _("Cloud prices")
        HARDWARE = "hardware", _("Hardware prices")

    class Status(models.TextChoices):
        PREVIEW = "preview", _("Preview")
        APPLIED = "applied", _("Applied")
        DISCARDED = "discarded", _("Discarded")

    TRANSITIONS = {Status.PREVIEW: {Status.APPLIED, Status.DISCARDED}}

    target = models.CharField(_("what it holds"), max_length=10, choices=Target.choices)
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, related_name="+")
    encoding = models.CharField(_("encoding"), max_length=20, blank=True)  # empty: still to choose
    delimiter = models.CharField(_("separator"), max_length=1, blank=True)
    status = models.CharField(
        _("status"), max_length=10, choices=Status.choices, default=Status.PREVIEW
    )
    version = models.PositiveIntegerField(default=1)
    counts = models.JSONField(default=dict, blank=True)  # fate: rows, once applied
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("price import")
        verbose_name_plural = _("price imports")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.file.name

    def get_absolute_url(self) -> str:
        return reverse("price-import-detail", args=[self.pk])
