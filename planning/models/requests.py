"""What a team asks for: a request (the head) and its revisions, each frozen once submitted."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.models import AppendOnlyError, Team, User
from core.organisation import today
from core.roles import SEES_ALL, Role, has_role, team_ids
from planning.models.delegations import Delegation
from planning.states import OPEN_REQUEST, REQUEST_RULES, RequestStatus, transitions
from planning.workloads import Kind

# Authority to decide is what a delegate borrows, and with it the sight of what is to be decided.
DECIDING_ROLES = (Role.APPROVER, Role.FINANCE, Role.PROCUREMENT)


def visible_teams(user: User) -> frozenset[int] | None:
    """Ids of the teams whose rows `user` may see; None: all. A stand-in sees what the absent approver sees."""
    if has_role(user, *SEES_ALL):
        return None
    teams = team_ids(user)
    for delegation in (
        Delegation.objects.active_on(today()).filter(delegate=user).select_related("principal")
    ):
        if has_role(delegation.principal, *DECIDING_ROLES):
            return None
        teams |= team_ids(delegation.principal, *DECIDING_ROLES)
    return teams


class Residence(models.TextChoices):
    """Where the data may be."""

    ANYWHERE = "anywhere", _("Anywhere")
    COUNTRY = "country", _("In the country only")
    ORGANISATION = "organisation", _("Inside the organisation only (no public cloud)")


class LatencyClass(models.TextChoices):
    """How fast an answer must be."""

    NONE = "", _("No target")
    VOICE = "voice", _("Live voice, under 100 ms")
    IMAGE = "image", _("Image inspection, under 200 ms")
    VIDEO = "video", _("Video, under 300 ms a frame")
    CHAT = "chat", _("Chat service, under 500 ms")
    OFFLINE = "offline", _("Offline, under 5 s")


LATENCY_SECONDS = {"voice": 0.1, "image": 0.2, "video": 0.3, "chat": 0.5, "offline": 5.0}


class RequestQuerySet(models.QuerySet["CapacityRequest"]):
    def visible_to(self, user: User) -> RequestQuerySet:
        """Requests of the teams that `user` may see."""
        teams = visible_teams(user)
        return self if teams is None else self.filter(team__in=teams)

    def open(self) -> RequestQuerySet:
        return self.filter(status__in=OPEN_REQUEST)

    def with_current(self) -> RequestQuerySet:
        """Load each request's current revision and its plan along, in a fixed number of queries."""
        return self.select_related("team", "requester").prefetch_related(
            models.Prefetch(
                "revisions",
                RequestRevision.objects.filter(
                    number=models.F("request__revision_number")
                ).select_related("plan"),
                to_attr="current_list",
            )
        )


class CapacityRequest(models.Model):
    """A team's need for compute, from the first draft to accepted cards."""

    Status = RequestStatus
    TRANSITIONS = transitions(REQUEST_RULES)

    number = models.PositiveIntegerField(_("number"), unique=True, editable=False)
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, related_name="requests", verbose_name=_("team")
    )
    requester = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="requests", verbose_name=_("requester")
    )
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    title = models.CharField(_("title"), max_length=160)
    kind = models.CharField(_("kind"), max_length=20, choices=Kind.choices)
    status = models.CharField(
        _("state"), max_length=20, choices=RequestStatus.choices, default=RequestStatus.DRAFT
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    revision_number = models.PositiveIntegerField(_("revision"), default=1, editable=False)
    # Of the plan's accelerators, how many passed acceptance so far; null: nobody told.
    accepted_cards = models.PositiveIntegerField(_("accepted"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    status_since = models.DateTimeField(_("in this state since"), default=timezone.now)

    objects = RequestQuerySet.as_manager()

    class Meta:
        verbose_name = _("capacity request")
        verbose_name_plural = _("capacity requests")
        ordering = ["-number"]
        indexes = [models.Index(fields=["team", "status"], name="request_team_status")]

    def __str__(self) -> str:
        return f"{self.reference} {self.title}"

    def get_absolute_url(self) -> str:
        return reverse("request-detail", args=[self.pk])

    @property
    def reference(self) -> str:
        """The number people say: `R-0042`."""
        return f"R-{self.number:04d}"

    @property
    def current(self) -> RequestRevision:
        """The revision that counts now."""
        loaded: list[RequestRevision] | None = getattr(self, "current_list", None)
        if loaded and loaded[0].number == self.revision_number:
            return loaded[0]
        return self.revisions.get(number=self.revision_number)

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_REQUEST


def _plain(value: Any) -> Any:
    """Whole floats as integers: databases differ in which of the two they give back for 1e16."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Origin(models.TextChoices):
    """How a revision came to be."""

    NEW = "new", _("New")
    RECALLED = "recalled", _("Recalled")
    REVISED = "revised", _("Revised")
    COPIED = "copied", _("Copied")
    TEMPLATE = "template", _("From a template")
    SPLIT = "split", _("Part of a split")
    MERGED = "merged", _("Merged")
    IMPORTED = "imported", _("Imported")
    RENEWED = "renewed", _("Renewal")


class RequestRevision(models.Model):
    """What is asked for, at one point. Frozen once submitted: by this class and by a trigger in the database."""

    request = models.ForeignKey(CapacityRequest, on_delete=models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField(_("revision"))
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.NEW)
    workload = models.JSONField(_("workload"))  # see planning.workloads: normalised, SI units
    need_by = models.DateField(_("needed by"))
    start = models.DateField(_("start"), null=True, blank=True)
    duration_days = models.PositiveIntegerField(_("duration (days)"), null=True, blank=True)
    justification = models.TextField(_("justification"))
    data_residence = models.CharField(
        _("where the data may be"),
        max_length=14,
        choices=Residence.choices,
        default=Residence.ANYWHERE,
    )
    interruptible = models.BooleanField(_("may be interrupted"), default=False)
    checkpoint_seconds = models.PositiveIntegerField(
        _("checkpoint interval (s)"), null=True, blank=True
    )
    latency_class = models.CharField(
        _("latency class"), max_length=10, choices=LatencyClass.choices, blank=True
    )
    accuracy_loss_limit = models.FloatField(
        _("accuracy-loss limit"), null=True, blank=True
    )  # share: 0.01 is one per cent
    region = models.CharField(_("region"), max_length=60, blank=True)
    content_hash = models.CharField(max_length=64, editable=False)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    authors = models.ManyToManyField(
        User, related_name="+"
    )  # who wrote any of it: none of them approves
    created_at = models.DateTimeField(default=timezone.now)
    submitted_at = models.DateTimeField(_("submitted"), null=True, blank=True)
    submitted_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    policy = models.ForeignKey(  # the rules under which it was submitted
        "planning.ApprovalPolicy", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    # What a reader compares between revisions, and what the hash covers.
    CONTENT = (
        "workload", "need_by", "start", "duration_days", "justification", "data_residence",
        "interruptible", "checkpoint_seconds", "latency_class", "accuracy_loss_limit", "region",
    )  # fmt: skip

    class Meta:
        verbose_name = _("request revision")
        verbose_name_plural = _("request revisions")
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["request", "number"], name="revision_once"),
            models.CheckConstraint(
                condition=Q(accuracy_loss_limit=None) | Q(accuracy_loss_limit__range=(0, 1)),
                name="revision_accuracy_share",
            ),
            models.CheckConstraint(
                condition=Q(submitted_at=None, submitted_by=None)
                | Q(submitted_at__isnull=False, submitted_by__isnull=False),
                name="revision_submitted_by",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request.reference} r{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if (
            self.pk is not None
            and type(self).objects.filter(pk=self.pk, submitted_at__isnull=False).exists()
        ):
            raise AppendOnlyError("A submitted revision is never changed: make a new one")
        self.content_hash = self.compute_hash()
        super().save(*args, **kwargs)

    def content(self) -> dict[str, Any]:
        """The fields that make up the ask, as JSON values."""
        values = {name: getattr(self, name) for name in self.CONTENT}
        return {
            name: value.isoformat() if hasattr(value, "isoformat") else value
            for name, value in values.items()
        }

    def compute_hash(self) -> str:
        """SHA-256 of kind and content, in canonical JSON."""
        body = _plain({"kind": self.request.kind, **self.content()})
        return hashlib.sha256(
            json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
        ).hexdigest()

    def bound_hash(self) -> str:
        """What an approval is given for: this content and this plan. Computed from the rows, never stored."""
        plan: Any = getattr(self, "plan", None)
        parts = f"{self.compute_hash()}:{plan.compute_hash() if plan else ''}"
        return hashlib.sha256(parts.encode()).hexdigest()

    @property
    def latency_seconds(self) -> float | None:
        """The latency class's bound. [s]"""
        return LATENCY_SECONDS.get(self.latency_class)

    @property
    def is_frozen(self) -> bool:
        return self.submitted_at is not None
