"""Samples pushed while cards burn in: the feed of a delivery, the state of each card, and what is kept for the log."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import User
from procurement.models.burn_in import BurnInRun
from procurement.models.deliveries import Delivery
from procurement.models.evidence import EvidenceFile

LEAST_GAP = timedelta(seconds=60)


class LiveFeed(models.Model):
    """Who may push samples for the cards of one delivery. Only the hash of the token is kept."""

    delivery = models.OneToOneField(Delivery, on_delete=models.PROTECT, related_name="feed")
    token_hash = models.CharField(max_length=64, unique=True)
    interval_seconds = models.PositiveSmallIntegerField(_("seconds between samples"), default=30)
    issued_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    issued_at = models.DateTimeField(default=timezone.now)
    last_at = models.DateTimeField(null=True)  # when the last push came
    samples = models.PositiveBigIntegerField(default=0)
    unknown = models.JSONField(default=list)  # devices that were not delivered here, the first few

    class Meta:
        verbose_name = _("live feed")
        verbose_name_plural = _("live feeds")
        constraints = [
            models.CheckConstraint(
                condition=Q(interval_seconds__gte=1, interval_seconds__lte=600),
                name="live_feed_interval",
            )
        ]

    def __str__(self) -> str:
        return str(self.delivery)

    @staticmethod
    def hash_of(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()

    @property
    def allowed_gap(self) -> timedelta:
        """Two intervals, a minute at least: a longer silence breaks the run."""
        return max(LEAST_GAP, timedelta(seconds=2 * self.interval_seconds))


class LiveCard(models.Model):
    """What one run has shown since its clock last started. One row a run, so that a page of 1,024 is one query."""

    run = models.OneToOneField(BurnInRun, on_delete=models.CASCADE, related_name="live")
    since = models.DateTimeField()  # first sample of the unbroken stretch
    last_at = models.DateTimeField()
    samples = models.PositiveIntegerField(default=0)
    ignored = models.PositiveIntegerField(default=0)  # sent twice, or from before the last one
    restarts = models.PositiveIntegerField(default=0)
    broken_at = models.DateTimeField(null=True)  # when the last break began
    broken_seconds = models.PositiveIntegerField(default=0)  # how long it was
    figures = models.JSONField(default=dict)  # of the last sample
    worst = models.JSONField(default=dict)  # extremes and problems since `since`
    silent_told_at = models.DateTimeField(null=True)
    sealed = models.ForeignKey(EvidenceFile, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        verbose_name = _("live card")
        verbose_name_plural = _("live cards")
        ordering = ["run__asset_id"]

    def __str__(self) -> str:
        return str(self.run)

    @property
    def seconds(self) -> int:
        """Length of the unbroken stretch. [s]"""
        return int((self.last_at - self.since).total_seconds())

    @property
    def remaining(self) -> timedelta:
        """Until the run has its hours, if nothing breaks it."""
        return timedelta(seconds=max(0, self.run.required_seconds - self.seconds))

    def is_silent(self, feed: LiveFeed, now: datetime) -> bool:
        return now - self.last_at > feed.allowed_gap


class LiveChunk(models.Model):
    """Rows of one push for one card, kept until they are sealed into a log."""

    run = models.ForeignKey(BurnInRun, on_delete=models.CASCADE, related_name="chunks")
    columns = models.JSONField()
    rows = models.TextField()

    class Meta:
        verbose_name = _("live samples")
        verbose_name_plural = _("live samples")
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.run_id} {self.pk}"
