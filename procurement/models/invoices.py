"""A vendor's invoice, matched against order, receipt and acceptance before it is paid."""

from __future__ import annotations

from datetime import date

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.machines import transitions
from core.models import StoredFile, User
from core.money import Money
from procurement.models.base import (
    Versioned,
    amount_field,
    currency_field,
    quantity_field,
    tax_rate_field,
    unit_price_field,
    within_teams,
)
from procurement.models.orders import OrderLine, PurchaseOrder
from procurement.models.quotes import TAX_MODE_CHOICES
from procurement.models.vendors import Vendor
from procurement.states import INVOICE_RULES, InvoiceStatus
from procurement.totals import DocumentTotals, PricedLine, TaxMode, document_totals


class InvoiceQuerySet(models.QuerySet["Invoice"]):
    def visible_to(self, user: User) -> InvoiceQuerySet:
        return within_teams(self, user, "order__lines__request")  # type: ignore[no-any-return]


class Invoice(Versioned):
    """One invoice. Its number is taken once per vendor, over all years."""

    Status = InvoiceStatus
    TRANSITIONS = transitions(INVOICE_RULES)
    RULES = INVOICE_RULES

    order = models.ForeignKey(PurchaseOrder, on_delete=models.PROTECT, related_name="invoices")
    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="invoices")
    number = models.CharField(_("invoice number"), max_length=80)
    folded_number = models.CharField(max_length=80, editable=False)
    dated_on = models.DateField(_("date of the invoice"))
    currency = currency_field()
    tax_mode = models.CharField(max_length=8, choices=TAX_MODE_CHOICES)
    stated_tax = amount_field(_("tax, as printed"))
    stated_gross = amount_field(_("total, as printed"))
    status = models.CharField(
        _("state"), max_length=10, choices=InvoiceStatus.choices, default=InvoiceStatus.CAPTURED
    )
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, null=True, related_name="+")
    matched_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    exceptions = models.JSONField(default=list)  # core.messages.Message each
    quantity_blocked = models.BooleanField(default=False)  # an exception that nobody may override
    override_reason = models.TextField(blank=True)
    approved_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    paid_at = models.DateTimeField(_("paid"), null=True)
    paid_amount = models.DecimalField(
        _("amount paid"), max_digits=18, decimal_places=3, null=True, blank=True
    )  # in the invoice's currency
    reason = models.TextField(blank=True)  # of voiding

    objects = InvoiceQuerySet.as_manager()

    class Meta:
        verbose_name = pgettext_lazy("finance", "invoice")
        verbose_name_plural = pgettext_lazy("finance", "invoices")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["vendor", "folded_number"],
                condition=~Q(status="void"),
                name="invoice_number_once",
            )
        ]

    def __str__(self) -> str:
        return self.number

    def get_absolute_url(self) -> str:
        return reverse("invoice-detail", args=[self.pk])

    @property
    def gross(self) -> Money:
        return Money(self.stated_gross, self.currency)

    @property
    def paid_on(self) -> date | None:
        """Day of the last payment. Rates and references are those of each payment."""
        return max((payment.paid_on for payment in self.payments.all()), default=None)

    @property
    def open_amount(self) -> Money:
        """What was not paid yet."""
        return Money(self.stated_gross - (self.paid_amount or 0), self.currency)

    def totals(self) -> DocumentTotals:
        """Totals computed from the lines: what the invoice should print."""
        return document_totals(
            [line.priced for line in self.lines.all()],
            currency=self.currency,
            tax_mode=TaxMode(self.tax_mode),
        )


class InvoiceLine(models.Model):
    """So many items of one order line, at a price."""

    invoice = models.ForeignKey(Invoice, on_delete=models.CASCADE, related_name="lines")
    order_line = models.ForeignKey(
        OrderLine, on_delete=models.PROTECT, related_name="invoice_lines"
    )
    quantity = quantity_field()
    unit_price = unit_price_field()
    tax_rate = tax_rate_field()

    class Meta:
        verbose_name = _("invoice line")
        verbose_name_plural = _("invoice lines")
        ordering = ["invoice_id", "order_line__position"]
        constraints = [
            models.UniqueConstraint(fields=["invoice", "order_line"], name="invoice_line_once"),
            models.CheckConstraint(condition=Q(quantity__gt=0), name="invoice_line_quantity"),
            models.CheckConstraint(condition=Q(unit_price__gte=0), name="invoice_line_price"),
        ]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.order_line}"

    @property
    def priced(self) -> PricedLine:
        return PricedLine(self.quantity, self.unit_price, self.tax_rate)
