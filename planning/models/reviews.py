"""Capacity reviews: one per fiscal quarter, its frozen figures, and the documents made from them."""

from __future__ import annotations

import hashlib
import json
from datetime import date
from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import (
    LANGUAGE_CHOICES,
    AppendOnlyError,
    AppendOnlyQuerySet,
    Job,
    StoredFile,
    Team,
    User,
)
from core.quarters import Quarter

LANGUAGES = ("en", "zh-hans")
BOTH = "both"  # one document, first in English, then in Chinese
REPORT_LANGUAGES = [*LANGUAGE_CHOICES, (BOTH, _("English and Chinese"))]


class CapacityReviewQuerySet(models.QuerySet["CapacityReview"]):
    def of_unit(self, team_id: int | None) -> CapacityReviewQuerySet:
        """Of a team, or of the whole organisation."""
        return self.filter(team=team_id) if team_id else self.filter(team=None)

    def asking_for_plans(self, until: date) -> CapacityReviewQuerySet:
        """Those that meet by `until` and have not begun."""
        begun = [CapacityReview.Status.IN_SESSION, CapacityReview.Status.CLOSED]
        return self.filter(meeting_on__lte=until, cancelled_at=None).exclude(status__in=begun)


class CapacityReview(models.Model):
    """The review of one fiscal quarter. The constraint, not the scheduler, makes it one."""

    class Status(models.TextChoices):
        SCHEDULED = "scheduled", _("Scheduled")
        DATA_FROZEN = "data_frozen", _("Figures frozen")
        REPORT_READY = "report_ready", _("Report ready")
        IN_SESSION = "in_session", _("In session")
        CLOSED = "closed", pgettext_lazy("state", "Closed")

    TRANSITIONS: dict[str, set[str]] = {
        Status.SCHEDULED: {Status.DATA_FROZEN},
        Status.DATA_FROZEN: {Status.REPORT_READY},
        # New figures make a new version; the report follows.
        Status.REPORT_READY: {Status.DATA_FROZEN, Status.IN_SESSION},
        Status.IN_SESSION: {Status.CLOSED},
        Status.CLOSED: set(),
    }

    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+",
        verbose_name=_("team"),
    )  # fmt: skip  # None: the whole organisation
    fiscal_year = models.PositiveIntegerField(_("fiscal year"))
    quarter = models.PositiveSmallIntegerField(_("quarter"))
    start_month = models.PositiveSmallIntegerField()  # of the fiscal year, as it was when scheduled
    meeting_on = models.DateField(_("meeting"))
    chair = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("chair"),
    )
    status = models.CharField(
        _("state"), max_length=14, choices=Status.choices, default=Status.SCHEDULED
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    agenda = models.TextField(_("agenda"), blank=True, max_length=4000)  # empty: the usual one
    # Empty: everyone who may read reviews.
    participants = models.ManyToManyField(
        User, blank=True, related_name="+", verbose_name=_("participants")
    )
    cancelled_at = models.DateTimeField(_("meeting cancelled"), null=True, editable=False)
    cancel_reason = models.CharField(_("reason"), max_length=300, blank=True, editable=False)
    minutes = models.TextField(_("minutes"), blank=True)
    invitation = models.PositiveIntegerField(
        default=0, editable=False
    )  # sequence of its calendar entry
    created_at = models.DateTimeField(default=timezone.now)

    objects = CapacityReviewQuerySet.as_manager()

    class Meta:
        verbose_name = _("capacity review")
        verbose_name_plural = _("capacity reviews")
        ordering = ["-fiscal_year", "-quarter"]
        constraints = [
            models.UniqueConstraint(
                "fiscal_year", "quarter", Coalesce("team", 0), name="one_review_per_quarter"
            ),
            models.CheckConstraint(condition=Q(quarter__range=(1, 4)), name="review_quarter"),
        ]

    def __str__(self) -> str:
        quarter = f"{self.fiscal_year}Q{self.quarter}"
        return quarter if self.team is None else f"{quarter} · {self.team}"

    def get_absolute_url(self) -> str:
        return reverse("review-detail", args=[self.pk])

    @property
    def code(self) -> str:
        """For names of files and calendar entries: `2027Q1`, `2027Q1-search`."""
        quarter = f"{self.fiscal_year}Q{self.quarter}"
        return quarter if self.team is None else f"{quarter}-{self.team.slug}"

    @property
    def period(self) -> Quarter:
        return Quarter(self.fiscal_year, self.quarter, self.start_month)


class ReviewSnapshot(models.Model):
    """The figures of a review at one instant. Never changed: a correction is the next number."""

    review = models.ForeignKey(CapacityReview, on_delete=models.PROTECT, related_name="snapshots")
    number = models.PositiveSmallIntegerField()
    as_of = models.DateTimeField(_("as of"))
    data = models.JSONField()
    data_hash = models.CharField(max_length=64)
    reason = models.CharField(_("reason"), max_length=300, blank=True)
    frozen_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = _("review snapshot")
        verbose_name_plural = _("review snapshots")
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["review", "number"], name="snapshot_number_once")
        ]

    def __str__(self) -> str:
        return f"{self.review} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError("A snapshot is never changed: freeze a new one")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("A snapshot is never deleted")

    @staticmethod
    def hash_of(data: dict[str, Any]) -> str:
        """SHA-256 of the figures."""
        body = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(body.encode()).hexdigest()


class ReviewReport(models.Model):
    """The PDF of one snapshot in one language."""

    snapshot = models.ForeignKey(ReviewSnapshot, on_delete=models.PROTECT, related_name="reports")
    language = models.CharField(_("language"), max_length=10, choices=REPORT_LANGUAGES)
    template_version = models.PositiveSmallIntegerField()
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    file = models.ForeignKey(
        StoredFile, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    made_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("review report")
        verbose_name_plural = _("review reports")
        ordering = ["language"]
        constraints = [
            models.UniqueConstraint(
                fields=["snapshot", "language", "template_version"], name="report_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.snapshot} {self.language}"
