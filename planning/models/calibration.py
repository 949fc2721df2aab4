"""Measured outcomes beside their estimates, and the versions of what was learned from them."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from core.models import Team, User
from planning.models.requests import CapacityRequest, visible_teams
from planning.workloads import Kind

BENCHMARK = "benchmark"  # class of work of benchmarks at acceptance


_WORK = {
    "training": _("Training"), "lora": _("LoRA or QLoRA"), "serving": _("Online inference"),
    "batch": _("Batch inference"), BENCHMARK: _("Benchmark at acceptance"),
}  # fmt: skip


def work_label(work: str) -> str:
    """A class of work in words: one of the estimators', a kind of request that stands alone, or a kind of outcome."""
    kinds = {**dict(Kind.choices), **dict(OutcomeKind.choices)}
    return str(_WORK.get(work) or kinds.get(work) or work)


class OutcomeKind(models.TextChoices):
    """What was measured. Only speeds and times teach the estimators."""

    SPEED = "speed", _("Speed (more is better)")
    TIME = "time", _("Time (less is better)")
    COST = "cost", pgettext_lazy("outcome", "Cost")
    QUEUE = "queue", _("Time in the queue")


class OutcomeQuerySet(models.QuerySet["MeasuredOutcome"]):
    def visible_to(self, user: User) -> OutcomeQuerySet:
        """Outcomes of the teams that `user` may see; those of no team for central roles."""
        teams = visible_teams(user)
        return self if teams is None else self.filter(team__in=teams)


class MeasuredOutcome(models.Model):
    """One figure as it turned out, with the estimate it is held against. Once for each `reference`."""

    reference = models.CharField(_("what was measured"), max_length=120, unique=True)
    kind = models.CharField(_("kind"), max_length=6, choices=OutcomeKind.choices)
    accelerator_slug = models.CharField(_("accelerator"), max_length=100, blank=True)
    work = models.CharField(_("class of work"), max_length=20, blank=True)
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+",
        verbose_name=_("team"),
    )  # fmt: skip
    request = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, null=True, blank=True, related_name="outcomes"
    )
    # Who promised the figure that it is held against; empty: nobody, the estimate is the product's.
    vendor = models.CharField(_("vendor"), max_length=200, blank=True)
    unit = models.CharField(_("unit"), max_length=16)
    estimated = models.FloatField(_("estimated"))
    low = models.FloatField(_("P10"), null=True, blank=True)
    high = models.FloatField(_("P90"), null=True, blank=True)
    measured = models.FloatField(_("measured"))
    factor = models.FloatField(default=1.0)  # of the calibration that the estimate rested on
    measured_at = models.DateTimeField(_("measured on"))
    left_out = models.CharField(_("left out because"), max_length=300, blank=True)
    recorded_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    recorded_at = models.DateTimeField(default=timezone.now)

    objects = OutcomeQuerySet.as_manager()

    class Meta:
        verbose_name = _("measured outcome")
        verbose_name_plural = _("measured outcomes")
        ordering = ["-measured_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(estimated__gt=0, measured__gt=0, factor__gt=0), name="outcome_positive"
            )
        ]

    def __str__(self) -> str:
        return self.reference

    @property
    def title(self) -> str:
        """What was measured, in words: costs of a request are kept under a key."""
        if self.kind == OutcomeKind.COST and self.request is not None:
            return gettext("Cost of %(request)s") % {"request": self.request}
        return self.reference

    @property
    def ratio(self) -> float:
        """Measured ÷ estimated as a speed, on published efficiencies. [1]"""
        share = self.measured / self.estimated
        return (share if self.kind == OutcomeKind.SPEED else 1 / share) * self.factor

    @property
    def within(self) -> bool | None:
        """Whether it fell between P10 and P90; None: no band was told."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high


class CalibrationVersion(models.Model):
    """Factors learned from outcomes, as of one moment. At most one is in force; none: the published efficiencies."""

    number = models.PositiveIntegerField(unique=True)
    made_at = models.DateTimeField(default=timezone.now)
    made_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    outcomes = models.PositiveIntegerField()
    result = models.JSONField()
    active = models.BooleanField(default=False)
    chosen = models.BooleanField(default=False)  # by a person: newer versions do not replace it

    class Meta:
        verbose_name = _("calibration version")
        verbose_name_plural = _("calibration versions")
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["active"], condition=Q(active=True), name="one_calibration_in_force"
            )
        ]

    def __str__(self) -> str:
        return str(self.number)

    def cells(self) -> list[dict[str, Any]]:
        """Rows of factors: accelerator, work, factor, low, high, outcomes."""
        found: list[dict[str, Any]] = self.result["cells"]
        return found
