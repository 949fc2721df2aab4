"""Serial-numbered units: where each is, in which state, and under which warranty."""

from __future__ import annotations

from datetime import date

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.machines import transitions
from core.models import User
from planning.models import CapacityRequest
from planning.models.requests import visible_teams
from procurement.models.base import Versioned
from procurement.models.deliveries import ReceiptLine
from procurement.models.quotes import Quote, ServiceLevel
from procurement.models.rfqs import TRIGGER_CHOICES
from procurement.states import ASSET_RULES, GONE_ASSET, AssetStatus


class AssetKind(models.TextChoices):
    ACCELERATOR = "accelerator", _("Accelerator")
    NODE = "node", _("Server")
    OTHER = "other", _("Other")


class AssetQuerySet(models.QuerySet["Asset"]):
    def visible_to(self, user: User) -> AssetQuerySet:
        """Units that serve the requests of teams `user` sees."""
        teams = visible_teams(user)
        return self if teams is None else self.filter(request__team__in=teams)

    def present(self) -> AssetQuerySet:
        """Without those that are gone for good."""
        return self.exclude(status__in=GONE_ASSET)


class Asset(Versioned):
    """One unit with a serial number, unique per manufacturer (case, spaces and width folded)."""

    Status = AssetStatus
    TRANSITIONS = transitions(ASSET_RULES)
    RULES = ASSET_RULES

    kind = models.CharField(_("kind"), max_length=12, choices=AssetKind.choices)
    manufacturer = models.CharField(_("manufacturer"), max_length=80, blank=True)
    folded_manufacturer = models.CharField(max_length=80, blank=True, editable=False)
    serial = models.CharField(_("serial number"), max_length=64)
    folded_serial = models.CharField(max_length=64, editable=False)
    model = models.CharField(_("model"), max_length=300)
    accelerator_slug = models.CharField(_("accelerator"), max_length=80, blank=True)
    uuid = models.CharField(_("device UUID"), max_length=80, null=True, blank=True, unique=True)
    receipt_line = models.ForeignKey(
        ReceiptLine, on_delete=models.PROTECT, null=True, related_name="assets"
    )
    request = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, null=True, related_name="assets"
    )
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children",
        verbose_name=_("in server"),
    )  # fmt: skip
    slot = models.CharField(_("slot"), max_length=20, blank=True)
    status = models.CharField(
        _("state"), max_length=12, choices=AssetStatus.choices, default=AssetStatus.RECEIVED
    )
    site = models.CharField(_("site"), max_length=80, blank=True)
    rack = models.CharField(_("rack"), max_length=40, blank=True)
    rack_unit = models.CharField(_("rack unit"), max_length=20, blank=True)
    received_on = models.DateField(_("received"))
    in_service_at = models.DateTimeField(_("in service since"), null=True)
    out_of_service_at = models.DateTimeField(_("out of service since"), null=True)
    replaces = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, related_name="replaced_by",
        verbose_name=_("replaces"),
    )  # fmt: skip

    objects = AssetQuerySet.as_manager()

    class Meta:
        verbose_name = pgettext_lazy("inventory", "asset")
        verbose_name_plural = pgettext_lazy("inventory", "assets")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["status", "kind"], name="asset_status_kind"),
            models.Index(fields=["folded_serial"], name="asset_serial"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["folded_manufacturer", "folded_serial"],
                condition=~Q(status="voided"),
                name="asset_serial_once",
            ),
            models.CheckConstraint(condition=~Q(folded_serial=""), name="asset_has_serial"),
            models.CheckConstraint(
                condition=~Q(status="in_service") | Q(in_service_at__isnull=False),
                name="asset_in_service_since",
            ),
        ]

    def __str__(self) -> str:
        return self.serial

    def get_absolute_url(self) -> str:
        return reverse("asset-detail", args=[self.pk])


class WarrantyBasis(models.TextChoices):
    ORDER = "order", _("With the order")
    EXTENSION = "extension", _("Extension")
    REPLACEMENT = "replacement", _("Taken over from the replaced unit")


class AssetWarranty(models.Model):
    """One warranty contract on one unit. An extension is a row of its own; nothing is overwritten."""

    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="warranties")
    basis = models.CharField(_("basis"), max_length=12, choices=WarrantyBasis.choices)
    source = models.ForeignKey(
        Quote, on_delete=models.PROTECT, related_name="+", verbose_name=_("by quote")
    )
    start_trigger = models.CharField(_("starts with"), max_length=14, choices=TRIGGER_CHOICES)
    months = models.PositiveSmallIntegerField(_("months"))
    service_level = models.CharField(
        _("service level"), max_length=12, choices=ServiceLevel.choices, blank=True
    )
    doa_days = models.PositiveSmallIntegerField(_("dead on arrival (days)"), null=True)
    # Under which the vendor registered the unit, where its warranty starts with that.
    registration = models.CharField(_("registered under"), max_length=80, blank=True)
    starts_on = models.DateField(_("first day"), null=True)  # null until the event that starts it
    ends_on = models.DateField(_("last covered day"), null=True)

    class Meta:
        verbose_name = _("warranty")
        verbose_name_plural = _("warranties")
        ordering = ["asset_id", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(months__gte=1), name="asset_warranty_months"),
            models.CheckConstraint(
                condition=Q(starts_on=None, ends_on=None)
                | Q(starts_on__isnull=False, ends_on__gte=models.F("starts_on")),
                name="asset_warranty_dates",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.asset} {self.starts_on or '?'} – {self.ends_on or '?'}"

    def covers(self, day: date) -> bool:
        return (
            self.starts_on is not None
            and self.ends_on is not None
            and self.starts_on <= day <= self.ends_on
        )
