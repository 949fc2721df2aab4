"""What people say and bring to a request: comments, those who watch it, papers."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import AppendOnlyError, AppendOnlyQuerySet, StoredFile, User
from planning.models.requests import CapacityRequest


class RequestComment(models.Model):
    """What one person said about a request, and whom they named. Append-only."""

    request = models.ForeignKey(CapacityRequest, on_delete=models.PROTECT, related_name="comments")
    author = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    text = models.TextField(_("comment"))
    mentions = models.ManyToManyField(User, related_name="+", blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = _("comment")
        verbose_name_plural = _("comments")
        ordering = ["id"]
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.request.reference} · {self.author}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError("Comments are never changed")
        super().save(*args, **kwargs)


class RequestWatch(models.Model):
    """A person who wants to be told when a request changes its state or someone comments on it."""

    request = models.ForeignKey(CapacityRequest, on_delete=models.CASCADE, related_name="watches")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("watcher")
        verbose_name_plural = _("watchers")
        constraints = [models.UniqueConstraint(fields=["request", "user"], name="watch_once")]

    def __str__(self) -> str:
        return f"{self.request.reference} · {self.user}"


class RequestAttachment(models.Model):
    """A paper kept with a request. Taken away it is only hidden: the file and the trail stay."""

    request = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, related_name="attachments"
    )
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, related_name="+")
    note = models.CharField(_("note"), max_length=200, blank=True)
    added_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    added_at = models.DateTimeField(default=timezone.now)
    removed_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("attachment")
        verbose_name_plural = _("attachments")
        ordering = ["id"]

    def __str__(self) -> str:
        return self.file.name
