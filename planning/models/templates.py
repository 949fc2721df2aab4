"""Requests that come from other requests: templates of a team, and which request became which."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import Team, User
from planning.models.requests import CapacityRequest, visible_teams
from planning.workloads import Kind


class TemplateQuerySet(models.QuerySet["RequestTemplate"]):
    def visible_to(self, user: User) -> TemplateQuerySet:
        """Templates of the teams whose requests `user` may see."""
        teams = visible_teams(user)
        return self if teams is None else self.filter(team__in=teams)

    def in_use(self) -> TemplateQuerySet:
        return self.filter(retired_at=None)


class RequestTemplate(models.Model):
    """Content of a request that a team files again and again. Dates are kept as days from the day of filing."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="request_templates")
    name = models.CharField(_("name"), max_length=120)
    title = models.CharField(_("title"), max_length=160)
    kind = models.CharField(_("kind"), max_length=20, choices=Kind.choices)
    workload = models.JSONField(_("workload"))
    terms = models.JSONField(default=dict)  # RequestRevision.CONTENT without workload and dates
    lead_days = models.PositiveIntegerField(_("days until it is needed"), default=30)
    made_from = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, null=True, related_name="templates"
    )
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    retired_at = models.DateTimeField(null=True, blank=True)

    objects = TemplateQuerySet.as_manager()

    class Meta:
        verbose_name = _("request template")
        verbose_name_plural = _("request templates")
        ordering = ["team__name", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["team", "name"], condition=Q(retired_at=None), name="template_name_once"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("template-list")


class Relation(models.TextChoices):
    """How one request became another."""

    COPIED = "copied", _("Copied to")
    SPLIT = "split", _("Split into")
    MERGED = "merged", _("Merged into")
    RENEWED = "renewed", _("Renewed as")


class RequestLink(models.Model):
    """One request from which another came."""

    source = models.ForeignKey(CapacityRequest, on_delete=models.PROTECT, related_name="became")
    target = models.ForeignKey(CapacityRequest, on_delete=models.PROTECT, related_name="came_from")
    relation = models.CharField(max_length=8, choices=Relation.choices)
    share = models.DecimalField(max_digits=6, decimal_places=3, null=True, blank=True)  # per cent
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("origin of a request")
        verbose_name_plural = _("origins of requests")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["source", "target"], name="link_once"),
            models.CheckConstraint(
                condition=~Q(source=models.F("target")), name="link_two_requests"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source.reference} → {self.target.reference}"
