"""What a review leads to: action items, and what each team plans for the next three months."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import Team, User
from planning.models.budgets import BudgetChange
from planning.models.requests import CapacityRequest
from planning.models.reviews import CapacityReview


class ReviewAction(models.Model):
    """A decision with someone who does it by a day."""

    class Status(models.TextChoices):
        OPEN = "open", _("Open")
        DONE = "done", _("Done")
        DROPPED = "dropped", _("Dropped")

    TRANSITIONS: dict[str, set[str]] = {
        Status.OPEN: {Status.DONE, Status.DROPPED},
        Status.DONE: set(),
        Status.DROPPED: set(),
    }

    review = models.ForeignKey(CapacityReview, on_delete=models.PROTECT, related_name="actions")
    text = models.CharField(_("decision"), max_length=500)
    pool = models.CharField(_("pool"), max_length=200, blank=True)
    owner = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="+", verbose_name=_("who does it")
    )
    due_on = models.DateField(_("by"))
    status = models.CharField(_("state"), max_length=8, choices=Status.choices, default=Status.OPEN)
    version = models.PositiveIntegerField(default=1, editable=False)
    request = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    transfer = models.OneToOneField(
        BudgetChange, on_delete=models.PROTECT, null=True, blank=True, related_name="review_action"
    )
    outcome = models.CharField(_("what became of it"), max_length=500, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("action item")
        verbose_name_plural = _("action items")
        ordering = ["due_on", "id"]

    def __str__(self) -> str:
        return self.text[:80]

    def get_absolute_url(self) -> str:
        return reverse("review-action", args=[self.pk])


class TeamPlan(models.Model):
    """What a team expects to use in the three months after a review's quarter. One for each review and team."""

    review = models.ForeignKey(CapacityReview, on_delete=models.PROTECT, related_name="plans")
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, related_name="+", verbose_name=_("team")
    )
    cards = models.FloatField(_("cards busy on average"), validators=[MinValueValidator(0)])
    text = models.TextField(_("what for"), max_length=2000)
    version = models.PositiveIntegerField(default=1, editable=False)
    told_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    told_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("team's plan")
        verbose_name_plural = _("teams' plans")
        ordering = ["team__name"]
        constraints = [
            models.UniqueConstraint(fields=["review", "team"], name="one_plan_a_team_and_review")
        ]

    def __str__(self) -> str:
        return f"{self.team} {self.review}"
