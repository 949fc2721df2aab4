"""A study: the options for one revision, computed from pinned inputs."""

from __future__ import annotations

from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import LANGUAGE_CHOICES, Job, StoredFile, User
from planning.models.requests import CapacityRequest, RequestRevision
from planning.states import STUDY_RULES, StudyStatus, transitions


class MarketSnapshot(models.Model):
    """Accelerators, offers, servers, rates and stock as one or more studies saw them. Never changed."""

    hash = models.CharField(max_length=64, unique=True)
    on = models.DateField(_("priced on"))
    as_of = models.DateField(_("newest price"), null=True)
    content = models.JSONField()  # planning.study.search.snapshot
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("market snapshot")
        verbose_name_plural = _("market snapshots")

    def __str__(self) -> str:
        return f"{self.on} · {self.hash[:8]}"


class StudyQuerySet(models.QuerySet["Study"]):
    def light(self) -> StudyQuerySet:
        """Without the large columns, for lists."""
        return self.defer("result", "inputs", "preview")

    def visible_to(self, user: User) -> StudyQuerySet:
        """Studies of the requests that `user` may see."""
        return self.filter(
            revision__request__in=CapacityRequest.objects.visible_to(user).values("pk")
        )


# A study that still answers for its inputs; one that is out of date or superseded never does again.
ANSWERS = (
    StudyStatus.DRAFT, StudyStatus.RUNNING, StudyStatus.READY, StudyStatus.PUBLISHED, StudyStatus.FAILED,
)  # fmt: skip


class Study(models.Model):
    """One computation: inputs, and what came out. The same inputs twice are one row, as long as it answers for them.

    `result["plans"]` is a list of objects that :func:`planning.services.plans.choose_plan` reads; each has ``key``,
    ``accelerator_slug``, ``cards``, ``servers`` (or null), ``mode`` (planning.economics.types.PaymentMode or
    ``mixed``), ``spend_kind`` (``cloud`` or ``purchase``; derived from the mode when missing), ``amount`` (decimal
    string), ``currency`` and ``summary`` (an object).
    """

    Status = StudyStatus
    TRANSITIONS = transitions(STUDY_RULES)

    revision = models.ForeignKey(RequestRevision, on_delete=models.PROTECT, related_name="studies")
    job = models.ForeignKey(
        Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="studies"
    )
    status = models.CharField(
        _("state"), max_length=12, choices=StudyStatus.choices, default=StudyStatus.DRAFT
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    snapshot = models.ForeignKey(
        MarketSnapshot, on_delete=models.PROTECT, null=True, blank=True, related_name="studies"
    )
    inputs = models.JSONField(default=dict)
    inputs_hash = models.CharField(max_length=64)
    result = models.JSONField(null=True, blank=True)
    result_hash = models.CharField(max_length=64, blank=True)
    preview = models.JSONField(null=True, blank=True)  # first ranked plans, while it runs
    error = models.JSONField(default=dict, blank=True)  # a core.messages.Message
    catalogue_date = models.DateField(_("prices as of"), null=True, blank=True)
    constants_version = models.CharField(max_length=40, blank=True)
    seed = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = StudyQuerySet.as_manager()

    class Meta:
        verbose_name = _("study")
        verbose_name_plural = _("studies")
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["revision", "inputs_hash"],
                condition=models.Q(status__in=ANSWERS),
                name="study_once_per_inputs",
            )
        ]

    def __str__(self) -> str:
        return f"{self.revision} · {self.inputs_hash[:8]}"

    def get_absolute_url(self) -> str:
        return reverse("study-detail", args=[self.pk])


class StudyBrief(models.Model):
    """The decision brief of one study in one language, as PDF; another one once a plan of it was chosen."""

    study = models.ForeignKey(Study, on_delete=models.PROTECT, related_name="briefs")
    language = models.CharField(_("language"), max_length=10, choices=LANGUAGE_CHOICES)
    template_version = models.PositiveSmallIntegerField()
    plan_key = models.CharField(
        max_length=160, blank=True, default=""
    )  # empty: nothing was chosen yet
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    file = models.ForeignKey(
        StoredFile, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    made_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("decision brief")
        verbose_name_plural = _("decision briefs")
        ordering = ["language"]
        constraints = [
            models.UniqueConstraint(
                fields=["study", "language", "template_version", "plan_key"], name="brief_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.study} {self.language}"
