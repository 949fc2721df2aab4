"""What vendors are asked: the RFQ, its lines from approved plans, its criteria, whom it invites, who opened it."""

from __future__ import annotations

import hashlib
import json
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.machines import transitions
from core.models import Organisation, User, validate_zone
from core.organisation import local_day, today
from planning.models import CapacityRequest, PlanChoice, ReviewAction
from procurement.models.base import Versioned, within_teams
from procurement.models.vendors import Vendor
from procurement.states import OPEN_RFQ, RFQ_RULES, RfqStatus
from procurement.warranty_rules import StartTrigger

TRIGGER_LABELS = {
    StartTrigger.ORDER: pgettext_lazy("warranty start", "Order"),
    StartTrigger.INVOICE: _("Vendor's invoice"),
    StartTrigger.SHIPMENT: _("Shipment"),
    StartTrigger.DELIVERY: pgettext_lazy("warranty start", "Delivery"),
    StartTrigger.POWER_ON: _("First power-on"),
    StartTrigger.ACCEPTANCE: _("Signed acceptance"),
    StartTrigger.REGISTRATION: _("Registration"),
}
TRIGGER_CHOICES = [(trigger.value, label) for trigger, label in TRIGGER_LABELS.items()]


class RfqQuerySet(models.QuerySet["Rfq"]):
    def visible_to(self, user: User) -> RfqQuerySet:
        """RFQs of the teams for which `user` takes part in buying."""
        return within_teams(self, user, "lines__request")  # type: ignore[no-any-return]

    def open(self) -> RfqQuerySet:
        return self.filter(status__in=OPEN_RFQ)


class Rfq(Versioned):
    """A request for quotation for the plans of one or more approved requests."""

    Status = RfqStatus
    TRANSITIONS = transitions(RFQ_RULES)
    RULES = RFQ_RULES

    number = models.CharField(_("number"), max_length=20, unique=True, editable=False)
    title = models.CharField(_("title"), max_length=160)
    owner = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="rfqs", editable=False, verbose_name=_("owner")
    )
    status = models.CharField(
        _("state"),
        max_length=10,
        choices=RfqStatus.choices,
        default=RfqStatus.DRAFT,
        editable=False,
    )
    sealed = models.BooleanField(
        _("sealed until opened"), default=False,
        help_text=_("Nobody can read prices before the bids are opened after the deadline."),
    )  # fmt: skip
    review_action = models.ForeignKey(
        ReviewAction, on_delete=models.PROTECT, null=True, blank=True, editable=False,
        related_name="+", verbose_name=_("decided in a capacity review"),
    )  # fmt: skip
    deadline = models.DateTimeField(_("deadline"))
    deadline_zone = models.CharField(
        _("time zone of the deadline"), max_length=64, validators=[validate_zone]
    )
    deliver_by = models.DateField(_("deliver by"), null=True, blank=True)
    warranty_months = models.PositiveSmallIntegerField(
        _("warranty asked for (months)"), default=36,
        validators=[MinValueValidator(1), MaxValueValidator(120)],
    )  # fmt: skip
    warranty_start = models.CharField(
        _("warranty asked to start with"), max_length=14, choices=TRIGGER_CHOICES,
        default=StartTrigger.ACCEPTANCE.value,
    )  # fmt: skip
    terms = models.TextField(_("terms of acceptance"), blank=True)
    criteria_hash = models.CharField(max_length=64, blank=True, editable=False)
    published_at = models.DateTimeField(_("published"), null=True, editable=False)
    closed_at = models.DateTimeField(_("closed"), null=True, editable=False)
    opened_at = models.DateTimeField(_("opened"), null=True, editable=False)
    # Rates as of the opening, by currency: {"USD": {"base", "quote", "rate", "as_of", "source"}}. A later rate does
    # not reorder bids.
    rates = models.JSONField(default=dict, editable=False)

    objects = RfqQuerySet.as_manager()

    class Meta:
        verbose_name = _("request for quotation")
        verbose_name_plural = _("requests for quotation")
        ordering = ["-id"]
        indexes = [models.Index(fields=["status", "deadline"], name="rfq_status_deadline")]

    def __str__(self) -> str:
        return f"{self.number} {self.title}"

    def get_absolute_url(self) -> str:
        return reverse("rfq-detail", args=[self.pk])

    @property
    def local_deadline(self) -> datetime:
        return self.deadline.astimezone(ZoneInfo(self.deadline_zone))

    @property
    def is_due(self) -> bool:
        """Quotes are taken in [published, deadline)."""
        return timezone.now() >= self.deadline

    @property
    def prices_hidden(self) -> bool:
        """Whether nobody may read prices now: sealed, and never opened."""
        return self.sealed and self.opened_at is None

    def judged_on(self, org: Organisation | None = None) -> date:
        """The day by which its quotes are judged: the local day of the opening, before it today."""
        return today(org) if self.opened_at is None else local_day(self.opened_at, org)

    def compute_hash(self) -> str:
        """SHA-256 of what is asked and how answers are judged."""
        body: dict[str, Any] = {
            "title": self.title,
            "sealed": self.sealed,
            "deliver_by": str(self.deliver_by),
            "warranty": [self.warranty_months, self.warranty_start],
            "terms": self.terms,
            "criteria": [[c.kind, c.weight] for c in self.criteria.order_by("kind")],
            "lines": [
                [line.position, line.accelerator_slug, line.accelerators, line.request_id]
                for line in self.lines.order_by("position")
            ],
        }
        # Where none are told the hash is what it was before there were any.
        if reached := [row.asked.to_json() for row in self.requirements.order_by("position")]:
            body["requirements"] = reached
        if clauses := [
            [row.title_en, row.title_zh, row.text_en, row.text_zh]
            for row in self.clauses.order_by("position")
        ]:
            body["clauses"] = clauses
        text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class RfqLine(models.Model):
    """What one request's approved plan needs."""

    rfq = models.ForeignKey(Rfq, on_delete=models.CASCADE, related_name="lines")
    position = models.PositiveSmallIntegerField(_("line"))
    request = models.ForeignKey(CapacityRequest, on_delete=models.PROTECT, related_name="rfq_lines")
    plan = models.ForeignKey(PlanChoice, on_delete=models.PROTECT, related_name="rfq_lines")
    plan_hash = models.CharField(max_length=64)  # of the plan as approved
    accelerator_slug = models.CharField(_("accelerator"), max_length=80)
    accelerators = models.PositiveIntegerField(_("accelerators"))
    description = models.CharField(_("what is asked for"), max_length=300)

    class Meta:
        verbose_name = _("RFQ line")
        verbose_name_plural = _("RFQ lines")
        ordering = ["rfq_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["rfq", "position"], name="rfq_line_position"),
            models.UniqueConstraint(fields=["rfq", "request"], name="rfq_request_once"),
            models.CheckConstraint(condition=Q(accelerators__gte=1), name="rfq_line_accelerators"),
        ]

    def __str__(self) -> str:
        return f"{self.position}. {self.description}"


class CriterionKind(models.TextChoices):
    """What is weighed. Each is computed from the quotes, so that no one scores by hand after seeing prices."""

    PRICE = "price", _("Price per accelerator")
    WARRANTY_PRICE = "warranty_price", _("Price per accelerator and warranted year")
    WARRANTY = "warranty", _("Length of warranty")
    LEAD_TIME = "lead_time", _("Lead time")


class RfqCriterion(models.Model):
    """One criterion and its weight; weights of an RFQ add up to 100."""

    rfq = models.ForeignKey(Rfq, on_delete=models.CASCADE, related_name="criteria")
    kind = models.CharField(_("criterion"), max_length=16, choices=CriterionKind.choices)
    weight = models.PositiveSmallIntegerField(_("weight"))

    class Meta:
        verbose_name = _("criterion")
        verbose_name_plural = _("criteria")
        ordering = ["-weight", "kind"]
        constraints = [
            models.UniqueConstraint(fields=["rfq", "kind"], name="rfq_criterion_once"),
            models.CheckConstraint(condition=Q(weight__range=(1, 100)), name="criterion_weight"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.weight}"


class RfqInvitation(models.Model):
    """A vendor that was asked."""

    rfq = models.ForeignKey(Rfq, on_delete=models.CASCADE, related_name="invitations")
    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="invitations")
    invited_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        ordering = ["vendor__name"]
        constraints = [
            models.UniqueConstraint(fields=["rfq", "vendor"], name="rfq_vendor_invited_once")
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} → {self.vendor}"


class RfqOpening(models.Model):
    """One person's part in opening sealed bids."""

    rfq = models.ForeignKey(Rfq, on_delete=models.PROTECT, related_name="openings")
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("bid opening")
        verbose_name_plural = _("bid openings")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["rfq", "person"], name="rfq_opened_once_per_person")
        ]

    def __str__(self) -> str:
        return f"{self.rfq.number} {self.person}"
