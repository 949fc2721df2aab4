"""Terms of payment as data: what a quote offers, the milestones of an order, invoices against them, and payments."""

from __future__ import annotations

from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.models import User
from procurement.milestones import MOST_DAYS, PaymentEvent, Term
from procurement.models.base import amount_field
from procurement.models.invoices import Invoice
from procurement.models.orders import PurchaseOrder
from procurement.models.quotes import Quote

EVENT_CHOICES = [
    (PaymentEvent.ORDER.value, pgettext_lazy("milestone", "Order")),
    (PaymentEvent.DELIVERY.value, pgettext_lazy("milestone", "Delivery")),
    (PaymentEvent.ACCEPTANCE.value, pgettext_lazy("milestone", "Acceptance after the burn-in")),
    (PaymentEvent.RETENTION.value, pgettext_lazy("milestone", "End of retention")),
]


class PaymentTerm(models.Model):
    """So many per cent, so many days after an event."""

    position = models.PositiveSmallIntegerField(_("number"))
    event = models.CharField(_("opens with"), max_length=10, choices=EVENT_CHOICES)
    percent = models.DecimalField(_("share (%)"), max_digits=6, decimal_places=3)
    days = models.PositiveSmallIntegerField(
        _("days after it"), default=0, validators=[MaxValueValidator(MOST_DAYS)]
    )
    label = models.CharField(_("label"), max_length=80, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.position}. {self.percent.normalize():f} % {self.get_event_display()}"

    @property
    def term(self) -> Term:
        return Term(PaymentEvent(self.event), self.percent, self.days, self.label)


class QuotePayment(PaymentTerm):
    """A term of payment that the vendor offers; without any, accepted quantities are paid by invoice."""

    quote = models.ForeignKey(Quote, on_delete=models.CASCADE, related_name="payments")

    class Meta:
        verbose_name = _("payment term")
        verbose_name_plural = _("payment terms")
        ordering = ["quote_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["quote", "position"], name="quote_payment_position"),
            models.CheckConstraint(
                condition=Q(percent__gt=0, percent__lte=100), name="quote_payment_percent"
            ),
        ]


class MilestoneQuerySet(models.QuerySet["Milestone"]):
    def standing(self) -> MilestoneQuerySet:
        """Those that the order is paid by, without those that an amendment put aside."""
        return self.filter(retired_at=None)


class Milestone(PaymentTerm):
    """A part of an order's price that opens with its event. What it comes to follows from the order's totals.

    Those that an amendment replaced are retired where a void invoice claimed them: kept for it, counted nowhere.
    """

    order = models.ForeignKey(PurchaseOrder, on_delete=models.CASCADE, related_name="milestones")
    retired_at = models.DateTimeField(_("retired"), null=True, editable=False)

    objects = MilestoneQuerySet.as_manager()

    class Meta:
        verbose_name = _("payment milestone")
        verbose_name_plural = _("payment milestones")
        ordering = ["order_id", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["order", "position"],
                condition=Q(retired_at=None),
                name="milestone_position",
            ),
            models.CheckConstraint(
                condition=Q(percent__gt=0, percent__lte=100), name="milestone_percent"
            ),
        ]


class InvoicePart(models.Model):
    """So much of one milestone, with tax, on an invoice."""

    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="parts")
    milestone = models.ForeignKey(Milestone, on_delete=models.PROTECT, related_name="parts")
    amount = amount_field(_("amount with tax"))

    class Meta:
        verbose_name = _("part of an invoice")
        verbose_name_plural = _("parts of an invoice")
        ordering = ["invoice_id", "milestone__position"]
        constraints = [
            models.UniqueConstraint(fields=["invoice", "milestone"], name="invoice_part_once"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="invoice_part_amount"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} · {self.milestone}"


class Payment(models.Model):
    """One payment of an invoice, as the bank made it. Never changed."""

    invoice = models.ForeignKey(Invoice, on_delete=models.PROTECT, related_name="payments")
    number = models.PositiveSmallIntegerField(_("number"))
    paid_on = models.DateField(_("day of the payment"))
    amount = amount_field(_("amount paid"))  # in the invoice's currency
    rate = models.DecimalField(
        _("rate of the payment"), max_digits=18, decimal_places=8, null=True, blank=True
    )
    reference = models.CharField(_("bank reference"), max_length=80, blank=True)
    settles = models.BooleanField(_("the rest is not paid"), default=False)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("payment")
        verbose_name_plural = _("payments")
        ordering = ["invoice_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["invoice", "number"], name="payment_number_once"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="payment_amount"),
        ]

    def __str__(self) -> str:
        return f"{self.invoice} · {self.number}"
