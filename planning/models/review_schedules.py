"""When capacity reviews are held: for the whole organisation, and for teams that hold their own."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from core.models import Team


class ReviewSchedule(models.Model):
    """The fiscal calendar by which the reviews of one unit are made. No team: the whole organisation."""

    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+",
        verbose_name=_("team"), help_text=_("Empty: the whole organisation."),
    )  # fmt: skip
    active = models.BooleanField(_("reviews are held"), default=True)
    start_month = models.PositiveSmallIntegerField(
        _("first month of the fiscal year"), null=True, blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(12)],
        help_text=_("1 to 12. Empty: that of the organisation."),
    )  # fmt: skip
    meeting_after_days = models.PositiveSmallIntegerField(
        _("meeting, days after the quarter's end"), null=True, blank=True,
        validators=[MaxValueValidator(90)], help_text=_("Empty: that of the rules of reviews."),
    )  # fmt: skip
    at_hour = models.PositiveSmallIntegerField(
        _("hour at which the review is made"), default=0, validators=[MaxValueValidator(23)],
        help_text=_("On the first day of each fiscal quarter, in the organisation's zone: 0 to 23."),
    )  # fmt: skip
    version = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        verbose_name = _("review schedule")
        verbose_name_plural = _("review schedules")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(Coalesce("team", 0), name="one_schedule_a_unit"),
            models.CheckConstraint(
                condition=Q(start_month=None) | Q(start_month__range=(1, 12)),
                name="schedule_start_month",
            ),
            models.CheckConstraint(condition=Q(at_hour__lte=23), name="schedule_hour"),
        ]

    def __str__(self) -> str:
        return str(self.team) if self.team else str(_("The whole organisation"))

    def get_absolute_url(self) -> str:
        return reverse("review-schedules")
