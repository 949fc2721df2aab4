"""The decision on a delivery's units: which are accepted, which are left out and why, and who signed."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from core.machines import transitions
from core.models import LANGUAGE_CHOICES, Job, StoredFile, User
from procurement.models.assets import Asset
from procurement.models.base import Versioned, within_teams
from procurement.models.burn_in import BurnInRun
from procurement.models.deliveries import Delivery
from procurement.states import ACCEPTANCE_RULES, AcceptanceStatus


class AcceptanceQuerySet(models.QuerySet["Acceptance"]):
    def visible_to(self, user: User) -> AcceptanceQuerySet:
        return within_teams(self, user, "delivery__order__lines__request")  # type: ignore[no-any-return]


class Acceptance(Versioned):
    """One proposal to accept units of a delivery, and the signature of a second person."""

    Status = AcceptanceStatus
    TRANSITIONS = transitions(ACCEPTANCE_RULES)
    RULES = ACCEPTANCE_RULES

    number = models.CharField(_("certificate"), max_length=24, unique=True)
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="acceptances")
    status = models.CharField(
        _("state"),
        max_length=14,
        choices=AcceptanceStatus.choices,
        default=AcceptanceStatus.PROPOSED,
    )
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    content_hash = models.CharField(max_length=64)  # units, runs, results and evidence hashes
    evidence_index = models.JSONField(default=list)  # {"name", "sha256", "format", "verdict"} each
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(_("signed"), null=True)
    reason = models.TextField(_("reason"), blank=True)

    objects = AcceptanceQuerySet.as_manager()

    class Meta:
        verbose_name = _("acceptance")
        verbose_name_plural = _("acceptances")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["delivery"], condition=Q(status="proposed"), name="one_open_acceptance"
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["accepted", "part_accepted"])
                | (Q(decided_by__isnull=False) & ~Q(decided_by=models.F("proposed_by"))),
                name="acceptance_two_persons",
            ),
        ]

    def __str__(self) -> str:
        return self.number

    def get_absolute_url(self) -> str:
        return reverse("acceptance-detail", args=[self.pk])


class AcceptanceUnit(models.Model):
    """One unit in a proposal."""

    acceptance = models.ForeignKey(Acceptance, on_delete=models.CASCADE, related_name="units")
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="acceptance_units")
    run = models.ForeignKey(BurnInRun, on_delete=models.PROTECT, null=True, related_name="+")
    included = models.BooleanField(_("to be accepted"))
    reason = models.CharField(_("why left out"), max_length=300, blank=True)
    void = models.BooleanField(default=False)  # the proposal was refused or withdrawn

    class Meta:
        verbose_name = _("unit")
        verbose_name_plural = _("units")
        ordering = ["acceptance_id", "asset__serial"]
        constraints = [
            models.UniqueConstraint(fields=["acceptance", "asset"], name="acceptance_unit_once"),
            # By run, not by unit: what was repaired is accepted again, on the strength of another run.
            models.UniqueConstraint(
                fields=["run"], condition=Q(included=True, void=False), name="run_accepted_once"
            ),
            models.CheckConstraint(
                condition=Q(included=False) | Q(run__isnull=False), name="accepted_unit_has_run"
            ),
            models.CheckConstraint(
                condition=Q(included=True) | ~Q(reason=""), name="excluded_unit_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.acceptance} {self.asset}"


class AcceptanceCertificate(models.Model):
    """The signed certificate as a document, in one language."""

    acceptance = models.ForeignKey(
        Acceptance, on_delete=models.PROTECT, related_name="certificates"
    )
    language = models.CharField(_("language"), max_length=10, choices=LANGUAGE_CHOICES)
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, related_name="+")
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("acceptance certificate")
        verbose_name_plural = _("acceptance certificates")
        ordering = ["language"]
        constraints = [
            models.UniqueConstraint(fields=["acceptance", "language"], name="certificate_once")
        ]

    def __str__(self) -> str:
        return f"{self.acceptance} {self.language}"
