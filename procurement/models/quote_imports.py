"""A table of quote lines that was uploaded: how it is read, what became of its rows, and the quote made of it."""

from __future__ import annotations

from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import Job, StoredFile, User
from procurement.models.quotes import Quote
from procurement.models.rfqs import Rfq
from procurement.models.vendors import Vendor


class QuoteImport(models.Model):
    """One table for one vendor's quote. Read by whoever uploaded it only; of a sealed bid it keeps no price but in
    the file, which nobody can download."""

    class Status(models.TextChoices):
        CHECKING = "checking", _("Being read")
        PREVIEW = "preview", _("Preview")
        APPLYING = "applying", _("Being applied")
        APPLIED = "applied", _("Applied")
        DISCARDED = "discarded", _("Discarded")

    TRANSITIONS = {
        Status.CHECKING: {Status.PREVIEW, Status.DISCARDED},
        Status.PREVIEW: {Status.CHECKING, Status.APPLYING, Status.DISCARDED},
        Status.APPLYING: {Status.APPLIED, Status.PREVIEW},
    }

    rfq = models.ForeignKey(Rfq, on_delete=models.PROTECT, related_name="quote_imports")
    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="+")
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, related_name="+")
    encoding = models.CharField(_("encoding"), max_length=20, blank=True)  # empty: still to choose
    delimiter = models.CharField(_("separator"), max_length=1, blank=True)
    status = models.CharField(
        _("status"), max_length=10, choices=Status.choices, default=Status.CHECKING
    )
    version = models.PositiveIntegerField(default=1)
    head = models.JSONField(default=dict)  # what the form said; the file's own head goes before it
    warranty = models.JSONField(default=dict)
    # {"counts", "rows": [[line, fate, [messages], shown cells]], "problems", "choices", "unknown_columns", "head"}
    report = models.JSONField(default=dict)
    quote = models.OneToOneField(
        Quote, on_delete=models.PROTECT, null=True, related_name="came_from"
    )
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("import of a quote")
        verbose_name_plural = _("imports of quotes")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.file.name

    def get_absolute_url(self) -> str:
        return reverse("quote-import-detail", args=[self.pk])
