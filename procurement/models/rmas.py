"""A card that goes back to its vendor."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from core.machines import transitions
from core.models import User
from planning.models.requests import visible_teams
from procurement.models.assets import Asset
from procurement.models.base import Versioned
from procurement.models.burn_in import BurnInRun
from procurement.models.evidence import EvidenceFile
from procurement.models.vendors import Vendor
from procurement.states import OPEN_RMA, RMA_RULES, RmaStatus


class Outcome(models.TextChoices):
    REPLACED = "replaced", _("Replaced")
    REPAIRED = "repaired", _("Repaired")
    NO_FAULT = "no_fault", _("No fault found")
    CREDITED = "credited", _("Credited")


class ClaimBasis(models.TextChoices):
    NOT_ACCEPTED = "not_accepted", _("Failed before acceptance")
    WARRANTY = "warranty", _("Under warranty")


class RmaQuerySet(models.QuerySet["Rma"]):
    def visible_to(self, user: User) -> RmaQuerySet:
        teams = visible_teams(user)
        return self if teams is None else self.filter(asset__request__team__in=teams)

    def open(self) -> RmaQuerySet:
        return self.filter(status__in=OPEN_RMA)


class Rma(Versioned):
    """One return of one unit: fault, evidence, vendor's number, what came back. One open per unit."""

    Status = RmaStatus
    TRANSITIONS = transitions(RMA_RULES)
    RULES = RMA_RULES

    number = models.CharField(_("number"), max_length=24, unique=True)
    asset = models.ForeignKey(Asset, on_delete=models.PROTECT, related_name="rmas")
    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="rmas")
    run = models.ForeignKey(BurnInRun, on_delete=models.PROTECT, null=True, related_name="rmas")
    status = models.CharField(
        _("state"), max_length=14, choices=RmaStatus.choices, default=RmaStatus.DRAFT
    )
    fault_on = models.DateField(_("day of the fault"))
    fault = models.TextField(_("what was seen"))
    basis = models.CharField(_("basis"), max_length=14, choices=ClaimBasis.choices, blank=True)
    evidence = models.ManyToManyField(EvidenceFile, related_name="rmas", blank=True)
    bundle_sha256 = models.CharField(max_length=64, blank=True)  # over the files' hashes, at filing
    vendor_number = models.CharField(_("vendor's RMA number"), max_length=60, blank=True)
    vendor_answer = models.TextField(_("vendor's answer"), blank=True)
    tracking = models.CharField(_("tracking number"), max_length=80, blank=True)
    filed_at = models.DateTimeField(_("filed"), null=True)
    shipped_at = models.DateTimeField(_("sent"), null=True)
    resolved_at = models.DateTimeField(_("resolved"), null=True)
    outcome = models.CharField(_("outcome"), max_length=10, choices=Outcome.choices, blank=True)
    replacement = models.OneToOneField(
        Asset, on_delete=models.PROTECT, null=True, related_name="came_by",
        verbose_name=_("replacement"),
    )  # fmt: skip

    objects = RmaQuerySet.as_manager()

    class Meta:
        verbose_name = _("RMA")
        verbose_name_plural = _("RMAs")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["asset"], condition=Q(status__in=sorted(OPEN_RMA)), name="one_open_rma"
            ),
            models.CheckConstraint(
                condition=~Q(status="resolved") | ~Q(outcome=""), name="resolved_rma_has_outcome"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.asset}"

    def get_absolute_url(self) -> str:
        return reverse("rma-detail", args=[self.pk])
