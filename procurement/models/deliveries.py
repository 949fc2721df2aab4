"""What came in: the delivery, its counted lines, and the serial numbers the vendor announced."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from core.machines import transitions
from core.models import User
from procurement.models.base import Versioned, quantity_field, within_teams
from procurement.models.orders import OrderLine, PurchaseOrder
from procurement.models.vendors import Vendor
from procurement.states import DELIVERY_RULES, DeliveryStatus


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def visible_to(self, user: User) -> DeliveryQuerySet:
        return within_teams(self, user, "order__lines__request")  # type: ignore[no-any-return]


class Delivery(Versioned):
    """One delivery note of one vendor: announced, then counted and posted, once."""

    Status = DeliveryStatus
    TRANSITIONS = transitions(DELIVERY_RULES)
    RULES = DELIVERY_RULES

    order = models.ForeignKey(PurchaseOrder, on_delete=models.PROTECT, related_name="deliveries")
    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="deliveries")
    note_number = models.CharField(_("delivery note"), max_length=80)
    folded_note = models.CharField(max_length=80, editable=False)
    status = models.CharField(
        _("state"), max_length=10, choices=DeliveryStatus.choices, default=DeliveryStatus.EXPECTED
    )
    expected_on = models.DateField(_("expected on"), null=True, blank=True)
    shipped_on = models.DateField(_("shipped on"), null=True, blank=True)
    arrived_on = models.DateField(_("arrived on"), null=True, blank=True)
    received_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    packaging_intact = models.BooleanField(_("packaging and seals intact"), null=True, blank=True)
    shock_label_clear = models.BooleanField(
        _("shock and tilt labels not triggered"), null=True, blank=True
    )
    notes = models.TextField(_("condition on arrival"), blank=True)
    reason = models.TextField(blank=True)  # of turning away or reversing

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["vendor", "folded_note"],
                condition=~Q(status="reversed"),
                name="delivery_note_once",
            ),
            models.CheckConstraint(
                condition=~Q(status="posted")
                | Q(arrived_on__isnull=False, received_by__isnull=False),
                name="posted_delivery_has_receiver",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.note_number} ({self.vendor})"

    def get_absolute_url(self) -> str:
        return reverse("delivery-detail", args=[self.pk])


class ReceiptLine(models.Model):
    """So many items of one order line, counted. Units that came without a serial number are told, not guessed."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="lines")
    order_line = models.ForeignKey(OrderLine, on_delete=models.PROTECT, related_name="receipts")
    quantity = quantity_field()
    substitution = models.ForeignKey(
        "procurement.Substitution", on_delete=models.PROTECT, null=True, related_name="receipts"
    )  # under which another part than ordered came
    missing_units = models.PositiveSmallIntegerField(_("units without a serial number"), default=0)
    missing_reason = models.CharField(_("why"), max_length=200, blank=True)

    class Meta:
        verbose_name = _("receipt line")
        verbose_name_plural = _("receipt lines")
        ordering = ["delivery_id", "order_line__position"]
        constraints = [
            models.UniqueConstraint(fields=["delivery", "order_line"], name="receipt_line_once"),
            models.CheckConstraint(condition=Q(quantity__gt=0), name="receipt_line_quantity"),
            models.CheckConstraint(
                condition=Q(missing_units=0) | ~Q(missing_reason=""), name="receipt_missing_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.order_line}"


class AnnouncedSerial(models.Model):
    """A serial number on the vendor's packing list."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="announced")
    serial = models.CharField(_("serial number"), max_length=64)
    folded_serial = models.CharField(max_length=64, db_index=True)

    class Meta:
        verbose_name = _("announced serial number")
        verbose_name_plural = _("announced serial numbers")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["delivery", "folded_serial"], name="announced_serial_once"
            )
        ]

    def __str__(self) -> str:
        return self.serial
