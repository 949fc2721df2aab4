"""Many requests at once: an uploaded table, and filters that people keep."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import Job, StoredFile, User


class RequestImport(models.Model):
    """One uploaded table of requests and how it is read. The same choices are used for the preview and for applying."""

    class Status(models.TextChoices):
        PREVIEW = "preview", _("Preview")
        APPLYING = "applying", _("Being applied")
        APPLIED = "applied", _("Applied")
        DISCARDED = "discarded", _("Discarded")

    TRANSITIONS = {
        Status.PREVIEW: {Status.APPLYING, Status.DISCARDED},
        Status.APPLYING: {Status.APPLIED, Status.PREVIEW},
    }

    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, related_name="+")
    encoding = models.CharField(_("encoding"), max_length=20, blank=True)  # empty: still to choose
    delimiter = models.CharField(_("separator"), max_length=1, blank=True)
    status = models.CharField(
        _("status"), max_length=10, choices=Status.choices, default=Status.PREVIEW
    )
    version = models.PositiveIntegerField(default=1)
    all_or_nothing = models.BooleanField(_("all rows or none"), default=True)
    counts = models.JSONField(default=dict, blank=True)  # fate: rows, once applied
    batch = models.UUIDField(null=True, blank=True)  # ties the entries of the trail together
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("import of requests")
        verbose_name_plural = _("imports of requests")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.file.name

    def get_absolute_url(self) -> str:
        return reverse("request-import-detail", args=[self.pk])


class FilterQuerySet(models.QuerySet["SavedFilter"]):
    def visible_to(self, user: User) -> FilterQuerySet:
        """One's own, and those that others share."""
        return self.filter(Q(owner=user) | Q(shared=True))


class SavedFilter(models.Model):
    """The query of a list under a name. Run by whoever opens it, with their own rights."""

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="saved_filters")
    name = models.CharField(_("name"), max_length=80)
    query = models.CharField(max_length=500)  # of the address, without the question mark
    shared = models.BooleanField(_("shared with everyone"), default=False)
    created_at = models.DateTimeField(default=timezone.now)

    objects = FilterQuerySet.as_manager()

    class Meta:
        verbose_name = pgettext_lazy("saved", "filter")
        verbose_name_plural = pgettext_lazy("saved", "filters")
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="filter_name_once")]

    def __str__(self) -> str:
        return self.name
