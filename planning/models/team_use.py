"""How busy a team's own cards were when it asked for more, kept with the revision."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import AppendOnlyError, AppendOnlyQuerySet
from planning.models.requests import RequestRevision


class RevisionUse(models.Model):
    """Measured at submission and never changed: deciders see what the requester saw."""

    class State(models.TextChoices):
        KNOWN = "known", _("Known")
        UNKNOWN = "unknown", _("Not known")
        NONE = "none", _("No cards of its own")

    revision = models.OneToOneField(
        RequestRevision, on_delete=models.PROTECT, related_name="team_use"
    )
    state = models.CharField(max_length=8, choices=State.choices)
    share = models.FloatField(null=True)  # mean utilisation, 0-1; null unless known
    cards = models.PositiveIntegerField()
    covered = models.FloatField(null=True)  # of the cards' hours, 0-1; null without cards
    first = models.DateField()
    last = models.DateField()  # included
    below = models.FloatField()  # the policy's threshold, 0-1
    reason = models.TextField(_("why what the team has does not do"), blank=True)
    at = models.DateTimeField(default=timezone.now)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = _("use at submission")
        verbose_name_plural = _("uses at submission")
        default_permissions = ("view",)
        constraints = [
            models.CheckConstraint(
                condition=Q(state="known", share__isnull=False)
                | (~Q(state="known") & Q(share=None)),
                name="revision_use_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.revision} · {self.state}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError("What was measured at submission is never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("What was measured at submission is never deleted")

    @property
    def low(self) -> bool:
        """Known, and under the threshold. Unknown use is never low."""
        return self.share is not None and self.share < self.below
