"""A vendor's priced answer, its lines, price breaks, warranty and papers."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.machines import transitions
from core.models import StoredFile, User
from procurement.models.base import (
    Versioned,
    currency_field,
    quantity_field,
    share_field,
    tax_rate_field,
    unit_price_field,
    within_teams,
)
from procurement.models.rfqs import TRIGGER_CHOICES, Rfq, RfqLine
from procurement.models.vendors import Vendor
from procurement.states import QUOTE_RULES, QuoteStatus
from procurement.totals import Break, DocumentTotals, PricedLine, TaxMode, document_totals
from procurement.warranty_rules import StartTrigger, Terms

TAX_MODE_CHOICES = [
    (TaxMode.DOCUMENT.value, _("Once on the document")),
    (TaxMode.LINE.value, _("On each line")),
]


class LineKind(models.TextChoices):
    SERVER = "server", _("Server")
    ACCELERATOR = "accelerator", _("Accelerator card")
    CLOUD = "cloud", _("Cloud capacity")
    NETWORK = "network", _("Network")
    STORAGE = "storage", _("Storage")
    SERVICE = "service", _("Service")
    SOFTWARE = "software", _("Software and support")
    FREIGHT = "freight", _("Freight and insurance")
    OTHER = "other", _("Other")


class QuoteQuerySet(models.QuerySet["Quote"]):
    def visible_to(self, user: User) -> QuoteQuerySet:
        """Quotes on RFQs that `user` sees. Whether their prices may be read is asked of `policies.can_read_prices`."""
        return within_teams(self, user, "rfq__lines__request")  # type: ignore[no-any-return]


class Quote(Versioned):
    """One version of one vendor's answer to an RFQ. Never edited: a new version supersedes it."""

    Status = QuoteStatus
    TRANSITIONS = transitions(QUOTE_RULES)
    RULES = QUOTE_RULES

    rfq = models.ForeignKey(Rfq, on_delete=models.PROTECT, related_name="quotes")
    vendor = models.ForeignKey(Vendor, on_delete=models.PROTECT, related_name="quotes")
    revision = models.PositiveSmallIntegerField(_("version of the quote"), default=1)
    supersedes = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, related_name="superseded_by", editable=False
    )
    status = models.CharField(
        _("state"), max_length=12, choices=QuoteStatus.choices, default=QuoteStatus.SUBMITTED,
        editable=False,
    )  # fmt: skip
    reference = models.CharField(_("vendor's reference"), max_length=80, blank=True)
    currency = currency_field()
    tax_mode = models.CharField(
        _("tax is computed"), max_length=8, choices=TAX_MODE_CHOICES, default=TaxMode.DOCUMENT.value
    )
    valid_until = models.DateField(_("valid until (last day)"))
    lead_time_days = models.PositiveSmallIntegerField(_("lead time (days)"))
    partial_delivery = models.BooleanField(_("may come in parts"), null=True, blank=True)
    incoterm = models.CharField(_("delivery term (Incoterm)"), max_length=40, blank=True)
    payment_terms = models.CharField(_("payment terms"), max_length=200, blank=True)
    notes = models.TextField(_("notes"), blank=True)
    received_at = models.DateTimeField(_("received"), default=timezone.now)
    content_hash = models.CharField(max_length=64, editable=False)
    reason = models.TextField(blank=True, editable=False)  # of withdrawal or disqualification

    objects = QuoteQuerySet.as_manager()

    class Meta:
        verbose_name = _("quote")
        verbose_name_plural = _("quotes")
        ordering = ["rfq_id", "vendor__name", "-revision"]
        constraints = [
            models.UniqueConstraint(
                fields=["rfq", "vendor", "revision"], name="quote_revision_once"
            ),
            models.UniqueConstraint(
                fields=["rfq", "vendor"],
                condition=Q(status__in=["submitted", "selected"]),
                name="one_standing_quote_per_vendor",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.vendor} · {self.rfq.number} v{self.revision}"

    def get_absolute_url(self) -> str:
        return reverse("quote-detail", args=[self.pk])

    @property
    def expires_at(self) -> datetime:
        """The instant at which the last valid day ends where the vendor is."""
        day: date = self.valid_until + timedelta(days=1)
        return datetime.combine(day, time.min, tzinfo=ZoneInfo(self.vendor.time_zone))

    def comes_on(self, ordered: date) -> date:
        """The day on which its goods come if they are ordered on this one."""
        return ordered + timedelta(days=self.lead_time_days)

    @property
    def is_expired(self) -> bool:
        return timezone.now() >= self.expires_at

    @property
    def offered_lines(self) -> list[QuoteLine]:
        """The lines that count: an alternative is offered instead of a line, not beside it."""
        return [line for line in self.lines.all() if line.alternative_to is None]

    def totals(self, offered: list[QuoteLine] | None = None) -> DocumentTotals:
        """Exact totals of the lines, without alternatives, in the quote's currency."""
        return document_totals(
            [line.priced for line in (self.offered_lines if offered is None else offered)],
            currency=self.currency,
            tax_mode=TaxMode(self.tax_mode),
        )


class QuoteLine(models.Model):
    """One position of a quote: so many items at a price for one."""

    quote = models.ForeignKey(Quote, on_delete=models.CASCADE, related_name="lines")
    position = models.PositiveSmallIntegerField(_("line"))
    rfq_line = models.ForeignKey(
        RfqLine, on_delete=models.PROTECT, null=True, blank=True, related_name="quote_lines",
        verbose_name=_("answers line"),
    )  # fmt: skip
    kind = models.CharField(_("kind"), max_length=12, choices=LineKind.choices)
    description = models.CharField(_("description"), max_length=300)
    manufacturer = models.CharField(_("manufacturer"), max_length=80, blank=True)
    part_number = models.CharField(_("part number"), max_length=80, blank=True)
    quantity = quantity_field()
    unit = models.CharField(_("unit"), max_length=20, default="pcs")
    unit_price = unit_price_field()
    tax_rate = tax_rate_field()
    serialised = models.BooleanField(_("has serial numbers"))
    accelerator_slug = models.CharField(_("accelerator"), max_length=80, blank=True)
    accelerators_per_item = models.PositiveSmallIntegerField(
        _("accelerators in one item"), default=0
    )
    # What the vendor told about the unit price: it is the list price less the discount, rounded once.
    list_price = models.DecimalField(
        _("list price"), max_digits=20, decimal_places=6, null=True, blank=True
    )
    discount_rate = share_field(_("discount"), null=True, blank=True)
    bundle = models.CharField(_("bundle"), max_length=80, blank=True)
    alternative_to = models.PositiveSmallIntegerField(_("instead of line"), null=True, blank=True)

    class Meta:
        verbose_name = _("quote line")
        verbose_name_plural = _("quote lines")
        ordering = ["quote_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["quote", "position"], name="quote_line_position"),
            models.CheckConstraint(condition=Q(quantity__gt=0), name="quote_line_quantity"),
            models.CheckConstraint(condition=Q(unit_price__gte=0), name="quote_line_price"),
            models.CheckConstraint(condition=Q(tax_rate__range=(0, 1)), name="quote_line_tax"),
            models.CheckConstraint(
                condition=Q(discount_rate=None) | Q(discount_rate__range=(0, 1)),
                name="quote_line_discount",
            ),
            models.CheckConstraint(
                condition=Q(alternative_to=None) | ~Q(alternative_to=models.F("position")),
                name="quote_line_other_alternative",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.position}. {self.description}"

    @property
    def priced(self) -> PricedLine:
        return PricedLine(self.quantity, self.unit_price, self.tax_rate)

    @property
    def accelerators(self) -> int:
        """Accelerators that the line brings: 5 servers of 8 are 40."""
        return int(self.quantity * self.accelerators_per_item)


class PriceBreak(models.Model):
    """A price for one item that holds for a range of quantities."""

    line = models.ForeignKey(QuoteLine, on_delete=models.CASCADE, related_name="breaks")
    from_quantity = models.PositiveIntegerField(_("from (quantity)"))
    to_quantity = models.PositiveIntegerField(_("to (quantity)"), null=True, blank=True)
    unit_price = unit_price_field()

    class Meta:
        verbose_name = _("price break")
        verbose_name_plural = _("price breaks")
        ordering = ["line_id", "from_quantity"]
        constraints = [
            models.UniqueConstraint(fields=["line", "from_quantity"], name="price_break_once"),
            models.CheckConstraint(
                condition=Q(to_quantity=None) | Q(to_quantity__gte=models.F("from_quantity")),
                name="price_break_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.from_quantity}–{self.to_quantity or '∞'}: {self.unit_price}"

    @property
    def step(self) -> Break:
        return Break(self.from_quantity, self.to_quantity, self.unit_price)


class QuoteAttachment(models.Model):
    """A paper that came with a quote. Holds prices: read only by those who may read the quote's."""

    quote = models.ForeignKey(Quote, on_delete=models.PROTECT, related_name="attachments")
    file = models.ForeignKey(StoredFile, on_delete=models.PROTECT, related_name="+")

    class Meta:
        verbose_name = _("attachment")
        verbose_name_plural = _("attachments")
        constraints = [
            models.UniqueConstraint(fields=["quote", "file"], name="quote_attachment_once")
        ]

    def __str__(self) -> str:
        return self.file.name


class ServiceLevel(models.TextChoices):
    RETURN_TO_BENCH = "rtb", _("Return to the workshop")
    DEPOT = "depot", _("Exchange at a depot")
    PARTS_ONLY = "parts", _("Parts only")
    ONSITE_NBD = "onsite_nbd", _("On site, next business day")
    ONSITE_4H = "onsite_4h", _("On site, 4 hours")
    CLOUD_CREDITS = "credits", _("Service credits (cloud)")


class Warrantor(models.TextChoices):
    MAKER = "maker", _("Maker of the system")
    CHIP_MAKER = "chip_maker", _("Maker of the accelerator")
    DISTRIBUTOR = "distributor", _("Distributor")
    RESELLER = "reseller", _("Seller")


class WarrantyTerms(models.Model):
    """What is promised when a card fails. Empty means that the quote does not say, which is itself a weak point."""

    quote = models.OneToOneField(Quote, on_delete=models.CASCADE, related_name="warranty")
    warrantor = models.CharField(
        _("who answers for it"), max_length=12, choices=Warrantor.choices, blank=True
    )
    covered_items = models.TextField(_("what is covered"), blank=True)
    start_trigger = models.CharField(_("starts with"), max_length=14, choices=TRIGGER_CHOICES)
    months = models.PositiveSmallIntegerField(
        _("months (parts)"), validators=[MinValueValidator(1), MaxValueValidator(240)]
    )
    labour_months = models.PositiveSmallIntegerField(_("months (labour)"), null=True, blank=True)
    onsite_months = models.PositiveSmallIntegerField(_("months (on site)"), null=True, blank=True)
    service_level = models.CharField(
        _("service level"), max_length=12, choices=ServiceLevel.choices, blank=True
    )
    response_hours = models.PositiveSmallIntegerField(
        _("response within (h)"), null=True, blank=True
    )
    fix_hours = models.PositiveSmallIntegerField(_("repaired within (h)"), null=True, blank=True)
    advance_replacement = models.BooleanField(
        _("replacement is sent before the return"), null=True, blank=True
    )
    return_days = models.PositiveSmallIntegerField(
        _("failed part to be returned within (days)"), null=True, blank=True
    )
    doa_days = models.PositiveSmallIntegerField(_("dead on arrival (days)"), null=True, blank=True)
    doa_from_delivery = models.BooleanField(
        _("dead on arrival counts from delivery"), null=True, blank=True
    )
    replacement_new = models.BooleanField(_("replacements are new"), null=True, blank=True)
    remedy = models.CharField(_("remedy and who chooses it"), max_length=200, blank=True)
    exclusions = models.TextField(_("exclusions, as written"), blank=True)
    burn_in_permitted = models.BooleanField(
        _("a 72 h burn-in counts as normal use"), null=True, blank=True
    )
    continuous_use_permitted = models.BooleanField(
        _("24×7 full load counts as normal use"), null=True, blank=True
    )
    diagnosis = models.CharField(_("who diagnoses, by which tool"), max_length=200, blank=True)
    failure_criteria = models.TextField(_("what counts as failed"), blank=True)
    performance_promise = models.TextField(_("promised performance"), blank=True)
    no_fault_fee = models.CharField(_("fee when no fault is found"), max_length=120, blank=True)
    freight = models.CharField(_("who pays freight and duty"), max_length=120, blank=True)
    media_kept = models.BooleanField(_("data-bearing parts may be kept"), null=True, blank=True)
    spares = models.CharField(_("spares on site"), max_length=200, blank=True)
    transferable = models.BooleanField(_("may be passed on"), null=True, blank=True)
    customer_swap = models.BooleanField(_("own staff may swap parts"), null=True, blank=True)
    environment = models.CharField(_("operating limits"), max_length=200, blank=True)
    firmware_access = models.CharField(_("access to firmware"), max_length=200, blank=True)
    software_support = models.CharField(_("software subscriptions"), max_length=200, blank=True)
    extension = models.CharField(_("price of an extension"), max_length=200, blank=True)
    spare_part_years = models.PositiveSmallIntegerField(
        _("spare parts available (years)"), null=True, blank=True
    )
    new_parts_only = models.BooleanField(
        _("all parts new, not overclocked, refurbished or relabelled"), null=True, blank=True
    )
    service_hours = models.CharField(
        _("hours, holidays and country of service"), max_length=120, blank=True
    )
    response_clock = models.CharField(_("what starts the clock"), max_length=120, blank=True)
    missed_remedy = models.CharField(
        _("remedy when a target is missed"), max_length=200, blank=True
    )
    advance_months = models.PositiveSmallIntegerField(
        _("sent before the return for (months)"), null=True, blank=True
    )
    advance_deposit = models.CharField(
        _("deposit for a replacement sent before"), max_length=120, blank=True
    )
    doa_new = models.BooleanField(
        _("dead on arrival is swapped whole for a new part"), null=True, blank=True
    )
    replacement_warranty = models.CharField(
        _("warranty of a replacement"), max_length=120, blank=True
    )
    export_control = models.CharField(
        _("export licence for a replacement"), max_length=200, blank=True
    )
    end_of_life = models.CharField(_("end of life as announced"), max_length=120, blank=True)
    cloud_sla = models.TextField(
        _("of cloud capacity: promised level, credits, time to swap a node"), blank=True
    )
    registration_days = models.PositiveSmallIntegerField(
        _("to be registered within (days of delivery)"), null=True, blank=True
    )
    authorised_channel = models.BooleanField(
        _("from an authorised channel, serial numbers checked with the maker"),
        null=True,
        blank=True,
    )

    class Meta:
        verbose_name = _("warranty terms")
        verbose_name_plural = _("warranty terms")
        constraints = [
            models.CheckConstraint(condition=Q(months__gte=1), name="warranty_terms_months")
        ]

    def __str__(self) -> str:
        return pgettext_lazy("warranty", "%(n)s months") % {"n": self.months}

    def terms(self, minimum_months: int | None = None) -> Terms:
        """The part that the red flags look at."""
        return Terms(
            start_trigger=StartTrigger(self.start_trigger),
            months=self.months,
            labour_months=self.labour_months,
            onsite_months=self.onsite_months,
            doa_days=self.doa_days,
            doa_from_delivery=self.doa_from_delivery,
            advance_replacement=self.advance_replacement,
            burn_in_permitted=self.burn_in_permitted,
            continuous_use_permitted=self.continuous_use_permitted,
            replacement_new=self.replacement_new,
            new_parts_only=self.new_parts_only,
            transferable=self.transferable,
            fix_hours=self.fix_hours,
            exclusions=self.exclusions,
            minimum_months=minimum_months,
            warrantor=self.warrantor,
            doa_new=self.doa_new,
            authorised_channel=self.authorised_channel,
            no_fault_fee=self.no_fault_fee,
            media_kept=self.media_kept,
            customer_swap=self.customer_swap,
        )
