"""The clause library: texts in English and Chinese as versions that are never changed, and those of an RFQ."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from core.models import (
    LANGUAGE_CHOICES,
    AppendOnlyError,
    AppendOnlyQuerySet,
    Job,
    StoredFile,
    User,
)
from procurement.models.rfqs import Rfq


class Wording(models.Model):
    """A clause's words in both languages, and what they ask as data (see `procurement.precedence`)."""

    title_en = models.CharField(_("title (English)"), max_length=120)
    title_zh = models.CharField(_("title (Chinese)"), max_length=120)
    text_en = models.TextField(_("text (English)"))
    text_zh = models.TextField(_("text (Chinese)"))
    asks = models.JSONField(_("asks of the warranty"), default=dict, blank=True)

    class Meta:
        abstract = True

    @property
    def title(self) -> str:
        """In the language in force."""
        return self.title_zh if _chinese() else self.title_en

    @property
    def text(self) -> str:
        """In the language in force."""
        return self.text_zh if _chinese() else self.text_en


def _chinese() -> bool:
    return (get_language() or "").startswith("zh")


class Clause(Wording):
    """One version of one clause. A change is a new version; the newest in use is offered."""

    code = models.SlugField(_("short name"), max_length=60)
    version = models.PositiveIntegerField(_("version"))
    in_use = models.BooleanField(_("in use"), default=True)
    preset = models.BooleanField(_("preset in a new RFQ"), default=True)
    reason = models.CharField(_("why it was changed"), max_length=300, blank=True)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField(_("made"), default=timezone.now)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = _("clause")
        verbose_name_plural = _("clauses")
        ordering = ["code", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["code", "version"], name="clause_version_once"),
            models.CheckConstraint(condition=models.Q(version__gte=1), name="clause_version"),
        ]

    def __str__(self) -> str:
        return f"{self.code} v{self.version}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError("A clause is never changed: make a new version")
        super().save(*args, **kwargs)

    def get_absolute_url(self) -> str:
        return reverse("clause-detail", args=[self.code])

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("A clause is never deleted: make a version that is out of use")


class RfqClause(Wording):
    """A clause of an RFQ: the version that was chosen, and its words as they were when the RFQ was issued."""

    rfq = models.ForeignKey(Rfq, on_delete=models.CASCADE, related_name="clauses")
    position = models.PositiveSmallIntegerField(_("clause"))
    clause = models.ForeignKey(Clause, on_delete=models.PROTECT, related_name="+")

    class Meta:
        verbose_name = _("clause of an RFQ")
        verbose_name_plural = _("clauses of an RFQ")
        ordering = ["rfq_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["rfq", "position"], name="rfq_clause_position"),
            models.UniqueConstraint(fields=["rfq", "clause"], name="rfq_clause_once"),
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} {self.position}. {self.clause}"


class RfqDocument(models.Model):
    """The RFQ as its vendors get it, in one language: drawn anew when its deadline moves, older revisions stay."""

    rfq = models.ForeignKey(Rfq, on_delete=models.PROTECT, related_name="documents")
    language = models.CharField(_("language"), max_length=10, choices=LANGUAGE_CHOICES)
    revision = models.PositiveSmallIntegerField(default=1)
    deadline = models.DateTimeField()  # as it stood when this was issued
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("document of an RFQ")
        verbose_name_plural = _("documents of an RFQ")
        ordering = ["language", "-revision"]
        constraints = [
            models.UniqueConstraint(
                fields=["rfq", "language", "revision"], name="rfq_document_revision"
            )
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} {self.language} {self.revision}"

    @property
    def local_deadline(self) -> datetime:
        return self.deadline.astimezone(ZoneInfo(self.rfq.deadline_zone))
