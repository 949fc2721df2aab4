"""Throughput: what a vendor promised on a line of its quote, and what benchmarks measured on delivered units."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import User
from procurement.models.assets import Asset
from procurement.models.base import share_field
from procurement.models.deliveries import Delivery
from procurement.models.evidence import EvidenceFile, VerdictChoice
from procurement.models.quotes import QuoteLine
from procurement.per import Per
from procurement.promises import BENCHMARKS, TOLERANCE

PER_CHOICES = [
    (Per.CARD.value, pgettext_lazy("promise", "per card")),
    (Per.SERVER.value, pgettext_lazy("promise", "per server")),
]
OTHER = _("Another benchmark")


def benchmark_choices() -> list[tuple[str, Any]]:
    """Benchmarks by slug, with the names that people know them by."""
    return [(row.slug, row.label or OTHER) for row in BENCHMARKS.values()]


def benchmark_field() -> models.CharField[Any, Any]:
    return models.CharField(_("benchmark"), max_length=20, choices=benchmark_choices())


class PerformancePromise(models.Model):
    """One promised figure of one line of a quote. It is part of what the vendor offers, and frozen with it."""

    line = models.ForeignKey(QuoteLine, on_delete=models.CASCADE, related_name="promises")
    benchmark = benchmark_field()
    name = models.CharField(_("as the vendor calls it"), max_length=120, blank=True)
    value = models.DecimalField(_("promised"), max_digits=20, decimal_places=6)
    unit = models.CharField(_("unit"), max_length=24)
    per = models.CharField(_("of what"), max_length=6, choices=PER_CHOICES)
    tolerance_rate = share_field(_("tolerance"), default=TOLERANCE)
    blocking = models.BooleanField(_("decides acceptance"), default=True)

    class Meta:
        verbose_name = _("promised throughput")
        verbose_name_plural = _("promised throughput")
        ordering = ["line_id", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["line", "benchmark", "name", "per"], name="promise_once"
            ),
            models.CheckConstraint(condition=Q(value__gt=0), name="promise_positive"),
            models.CheckConstraint(
                condition=Q(tolerance_rate__range=(0, Decimal("0.5"))), name="promise_tolerance"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.label}: {self.value.normalize():f} {self.unit}"

    @property
    def label(self) -> str:
        """The vendor's words, else the benchmark's name."""
        return self.name or str(self.get_benchmark_display())

    def columns(self) -> dict[str, Any]:
        """What is copied with the line, and hashed as part of the offer."""
        return {
            name: getattr(self, name)
            for name in (
                "benchmark",
                "name",
                "value",
                "unit",
                "per",
                "tolerance_rate",
                "blocking",
            )
        }


class MeasurementQuerySet(models.QuerySet["Measurement"]):
    def that_count(self) -> MeasurementQuerySet:
        """Figures of files that stand: not flagged, not altered, no evidence against themselves.

        What a reader takes from a file that fails is its own choice (a slow run measured its speed); what a person
        typed in falls with the file.
        """
        return (
            self.filter(evidence__flags=[], evidence__altered_at=None)
            .exclude(evidence__verdict__in=(VerdictChoice.REJECT, VerdictChoice.RETEST))
            .exclude(evidence__verdict=VerdictChoice.FAIL, recorded_by__isnull=False)
        )


class Measurement(models.Model):
    """What one file shows a unit to do on one benchmark: found by a reader, or typed in beside the file."""

    evidence = models.ForeignKey(
        EvidenceFile, on_delete=models.CASCADE, related_name="measurements"
    )
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="measurements")
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="measurements")
    benchmark = benchmark_field()
    name = models.CharField(_("as the vendor calls it"), max_length=120, blank=True)
    value = models.DecimalField(_("measured"), max_digits=20, decimal_places=6)
    unit = models.CharField(_("unit"), max_length=24)
    recorded_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="+"
    )  # null: found by a reader
    note = models.CharField(_("note"), max_length=300, blank=True)
    measured_at = models.DateTimeField(_("measured on"), default=timezone.now)

    objects = MeasurementQuerySet.as_manager()

    class Meta:
        verbose_name = _("measured throughput")
        verbose_name_plural = _("measured throughput")
        ordering = ["id"]
        indexes = [models.Index(fields=["delivery", "benchmark"], name="measurement_of_delivery")]
        constraints = [
            models.UniqueConstraint(
                fields=["evidence", "asset", "benchmark", "name"], name="measurement_once"
            ),
            models.CheckConstraint(condition=Q(value__gt=0), name="measurement_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.asset} {self.value.normalize():f} {self.unit}"

    @property
    def is_of_run(self) -> bool:
        """Whether `measured_at` is the end of the run as the file tells it; else it is when the figure was recorded."""
        return self.measured_at < self.evidence.created_at
