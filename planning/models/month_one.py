"""The look back four weeks after acceptance, and the organisation's rules for it."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import User
from planning.models.requests import CapacityRequest, visible_teams


class QueueStatistic(models.TextChoices):
    """Which figure of the waiting times counts."""

    MEAN = "mean", _("Mean")
    P50 = "p50", _("Median")
    P90 = "p90", _("p90: nine of ten jobs wait less")
    LONGEST = "longest", _("Longest")


class ReviewRules(models.Model):
    """The organisation's settings of reviews. One row."""

    queue_statistic = models.CharField(
        _("figure of the queue"), max_length=8, choices=QueueStatistic.choices,
        default=QueueStatistic.P90,
    )  # fmt: skip
    queue_hours = models.FloatField(
        _("too long from [h]"), default=24, validators=[MinValueValidator(0.1)]
    )
    oversized_percent = models.FloatField(
        _("over-sized below a utilisation of [%]"), default=30,
        validators=[MinValueValidator(0), MaxValueValidator(100)],
    )  # fmt: skip
    days_after_acceptance = models.PositiveSmallIntegerField(
        _("days after acceptance"), default=28, validators=[MinValueValidator(7)]
    )
    meeting_after_days = models.PositiveSmallIntegerField(
        _("meeting, days after the quarter's end"), default=7
    )
    plans_before_days = models.PositiveSmallIntegerField(
        _("teams' plans are asked for, days before the meeting"), default=21
    )
    remind_before_days = models.PositiveSmallIntegerField(
        _("people are reminded, days before the meeting"), default=2
    )
    singleton = models.BooleanField(default=True, unique=True, editable=False)

    class Meta:
        verbose_name = _("rules of reviews")
        verbose_name_plural = _("rules of reviews")
        constraints = [
            models.CheckConstraint(condition=models.Q(singleton=True), name="one_set_of_rules")
        ]

    def __str__(self) -> str:
        return str(_("rules of reviews"))


class MonthOneQuerySet(models.QuerySet["MonthOneReview"]):
    def visible_to(self, user: User) -> MonthOneQuerySet:
        """Looks back at requests of the teams that `user` may see."""
        teams = visible_teams(user)
        return self if teams is None else self.filter(request__team__in=teams)


class MonthOneReview(models.Model):
    """What the first four weeks showed. Once for each request; its figures stay as they were found."""

    class Status(models.TextChoices):
        OPEN = "open", _("Open")
        DONE = "done", _("Done")

    TRANSITIONS: dict[str, set[str]] = {Status.OPEN: {Status.DONE}, Status.DONE: set()}

    class Finding(models.TextChoices):
        FITS = "fits", _("Fits the work")
        OVERSIZED = "oversized", _("Over-sized")
        INSUFFICIENT = "insufficient", _("Too small")
        SCHEDULING = "scheduling", _("Scheduling or fragments, not capacity")
        UNKNOWN = "unknown", _("Not enough is known")

    request = models.OneToOneField(
        CapacityRequest, on_delete=models.PROTECT, related_name="month_one"
    )
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    status = models.CharField(_("state"), max_length=6, choices=Status.choices, default=Status.OPEN)
    version = models.PositiveIntegerField(default=1, editable=False)
    finding = models.CharField(_("finding"), max_length=12, choices=Finding.choices)
    figures = models.JSONField()  # as found; see services.month_one
    answer = models.TextField(_("what was done"), blank=True)
    made_at = models.DateTimeField(default=timezone.now)
    done_at = models.DateTimeField(null=True, blank=True)

    objects = MonthOneQuerySet.as_manager()

    class Meta:
        verbose_name = _("month-one review")
        verbose_name_plural = _("month-one reviews")
        ordering = ["-made_at", "-id"]

    def __str__(self) -> str:
        return str(self.request)

    def get_absolute_url(self) -> str:
        return reverse("month-one", args=[self.pk])
