"""The binding order, its lines, and its amendments as revisions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.machines import transitions
from core.models import StoredFile, User
from core.money import Money
from planning.models import CapacityRequest, Site
from procurement.models.awards import Award
from procurement.models.base import (
    Versioned,
    amount_field,
    currency_field,
    quantity_field,
    tax_rate_field,
    unit_price_field,
    within_teams,
)
from procurement.models.quotes import TAX_MODE_CHOICES, LineKind, Quote, QuoteLine
from procurement.models.vendors import Vendor
from procurement.precedence import Precedence
from procurement.states import ORDER_RULES, REVISION_RULES, OrderStatus, RevisionStatus
from procurement.totals import DocumentTotals, PricedLine, TaxMode, document_totals

PRECEDENCE_CHOICES = [
    (Precedence.CLAUSES.value, _("The clauses hold")),
    (Precedence.QUOTE.value, _("The quote holds")),
]


class OrderQuerySet(models.QuerySet["PurchaseOrder"]):
    def visible_to(self, user: User) -> OrderQuerySet:
        return within_teams(self, user, "lines__request")  # type: ignore[no-any-return]


class PurchaseOrder(Versioned):
    """An order to one vendor on the terms of one version of its quote."""

    Status = OrderStatus
    TRANSITIONS = transitions(ORDER_RULES)
    RULES = ORDER_RULES

    number = models.CharField(_("number"), max_length=24, null=True, unique=True, editable=False)  # noqa: DJ001 - none before issue; unique once given
    award = models.ForeignKey(Award, on_delete=models.PROTECT, related_name="orders")
    quote = models.ForeignKey(Quote, on_delete=models.PROTECT, related_name="orders")
    vendor = models.ForeignKey(
        Vendor, on_delete=models.PROTECT, related_name="orders", verbose_name=_("vendor")
    )
    status = models.CharField(
        _("state"), max_length=14, choices=OrderStatus.choices, default=OrderStatus.DRAFT
    )
    currency = currency_field()
    tax_mode = models.CharField(max_length=8, choices=TAX_MODE_CHOICES)
    revision = models.PositiveSmallIntegerField(_("amendment"), default=0)
    net_amount = amount_field(_("net"), default=Decimal(0))
    tax_amount = amount_field(_("tax"), default=Decimal(0))
    gross_amount = amount_field(_("total"), default=Decimal(0))
    issued_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    issued_at = models.DateTimeField(_("issued"), null=True)
    expected_on = models.DateField(
        _("expected on"), null=True
    )  # by lead time from the day of issue
    promised_on = models.DateField(_("promised on"), null=True)  # as the vendor acknowledged
    # Where it is to be delivered; null: nobody told.
    site = models.ForeignKey(
        Site, on_delete=models.PROTECT, null=True, related_name="orders", verbose_name=_("site")
    )
    # Which holds where the quote says less than a clause; empty: the order was issued without a word on it.
    precedence = models.CharField(
        _("where quote and clauses differ"), max_length=8, choices=PRECEDENCE_CHOICES, blank=True
    )
    # What acceptance is judged by, as it was when the order bound: the evidence policy, and the hours of burn-in.
    evidence_policy = models.JSONField(null=True, editable=False)
    burn_in_hours = models.PositiveSmallIntegerField(
        _("burn-in (hours)"), null=True, editable=False
    )
    document = models.ForeignKey(StoredFile, on_delete=models.PROTECT, null=True, related_name="+")

    objects = OrderQuerySet.as_manager()

    class Meta:
        verbose_name = _("purchase order")
        verbose_name_plural = _("purchase orders")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["award", "quote"], name="one_order_per_award_and_quote"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["draft", "cancelled"])
                | Q(number__isnull=False, issued_by__isnull=False, issued_at__isnull=False),
                name="issued_order_has_number",
            ),
        ]

    def __str__(self) -> str:
        return self.number or pgettext_lazy("order", "Draft order %(n)s") % {"n": self.pk}

    @property
    def trail_label(self) -> str:
        """Its name in the audit trail, which knows no language."""
        return self.number or f"#{self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("order-detail", args=[self.pk])

    @property
    def gross(self) -> Money:
        return Money(self.gross_amount, self.currency)

    def totals(self, lines: Iterable[OrderLine] | None = None) -> DocumentTotals:
        """Exact totals of the binding lines (or of `lines`), in the order's currency."""
        return document_totals(
            [line.priced for line in (self.lines.all() if lines is None else lines)],
            currency=self.currency,
            tax_mode=TaxMode(self.tax_mode),
        )


class OrderLine(models.Model):
    """One position of an order, as it binds now. What it was before is in the order's revisions."""

    order = models.ForeignKey(PurchaseOrder, on_delete=models.CASCADE, related_name="lines")
    position = models.PositiveSmallIntegerField(_("line"))
    quote_line = models.ForeignKey(QuoteLine, on_delete=models.PROTECT, related_name="order_lines")
    request = models.ForeignKey(
        CapacityRequest, on_delete=models.PROTECT, null=True, related_name="order_lines"
    )
    kind = models.CharField(_("kind"), max_length=12, choices=LineKind.choices)
    description = models.CharField(_("description"), max_length=300)
    manufacturer = models.CharField(_("manufacturer"), max_length=80, blank=True)
    part_number = models.CharField(_("part number"), max_length=80, blank=True)
    quantity = quantity_field()
    unit = models.CharField(_("unit"), max_length=20)
    unit_price = unit_price_field()
    tax_rate = tax_rate_field()
    serialised = models.BooleanField(_("has serial numbers"))
    accelerator_slug = models.CharField(_("accelerator"), max_length=80, blank=True)
    accelerators_per_item = models.PositiveSmallIntegerField(default=0)
    short_closed = models.BooleanField(_("closed short"), default=False)

    class Meta:
        verbose_name = _("order line")
        verbose_name_plural = _("order lines")
        ordering = ["order_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["order", "position"], name="order_line_position"),
            models.CheckConstraint(condition=Q(quantity__gt=0), name="order_line_quantity"),
            models.CheckConstraint(condition=Q(unit_price__gte=0), name="order_line_price"),
        ]

    def __str__(self) -> str:
        return f"{self.position}. {self.description}"

    @property
    def priced(self) -> PricedLine:
        return PricedLine(self.quantity, self.unit_price, self.tax_rate)

    @property
    def units_per_item(self) -> int:
        """Units with a serial number of their own in one item: its accelerators, or the item itself; 0 if none."""
        return max(self.accelerators_per_item, 1) if self.serialised else 0

    def snapshot(self) -> dict[str, Any]:
        """The line's terms as JSON values."""
        return {
            "position": self.position,
            "description": self.description,
            "part_number": self.part_number,
            "quantity": f"{self.quantity:.3f}",
            "unit": self.unit,
            "unit_price": f"{self.unit_price:.6f}",
            "tax_rate": f"{self.tax_rate:.5f}",
            "request": self.request_id,
        }


def terms_hash(
    lines: Iterable[dict[str, Any]],
    currency: str,
    tax_mode: str,
    payments: Iterable[dict[str, Any]] = (),
) -> str:
    """SHA-256 of an order's terms, in canonical JSON."""
    body: dict[str, Any] = {"currency": currency, "tax_mode": tax_mode, "lines": list(lines)}
    if parts := list(payments):
        body["payments"] = parts
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class OrderRevision(models.Model):
    """Terms of an order at one point: the original (0), and each amendment proposed since."""

    Status = RevisionStatus
    TRANSITIONS = transitions(REVISION_RULES)
    RULES = REVISION_RULES

    order = models.ForeignKey(PurchaseOrder, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveSmallIntegerField(_("amendment"))
    status = models.CharField(_("state"), max_length=10, choices=RevisionStatus.choices)
    reason = models.TextField(_("reason"), blank=True)
    lines = models.JSONField()  # OrderLine.snapshot of each
    payments = models.JSONField(default=list)  # milestones.Term.to_json of each
    gross_amount = amount_field(_("total"))
    content_hash = models.CharField(max_length=64)
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField(default=timezone.now)
    decided_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)
    decision_reason = models.TextField(blank=True)

    class Meta:
        verbose_name = _("amendment")
        verbose_name_plural = _("amendments")
        ordering = ["order_id", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["order", "number"], name="order_revision_once"),
            models.UniqueConstraint(
                fields=["order"], condition=Q(status="proposed"), name="one_open_amendment"
            ),
            models.UniqueConstraint(
                fields=["order"], condition=Q(status="binding"), name="one_binding_revision"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.order} a{self.number}"
