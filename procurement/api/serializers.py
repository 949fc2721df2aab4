"""What the API shows and takes. Amounts and quantities are decimal strings; states are read-only everywhere."""

from __future__ import annotations

from typing import Any, cast

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.http import api_user
from core.messages import Message
from core.money import money_json as money
from core.organisation import organisation
from procurement import policies
from procurement.milestones import PaymentEvent
from procurement.models import (
    Acceptance,
    AcceptanceUnit,
    Asset,
    AssetWarranty,
    Award,
    AwardDocument,
    AwardLine,
    BurnInRun,
    Concession,
    ConflictStatement,
    Delivery,
    EvidenceFile,
    Invoice,
    InvoiceLine,
    InvoicePart,
    OrderRevision,
    Payment,
    PerformancePromise,
    PurchaseOrder,
    PurchasingPolicy,
    Quote,
    QuoteLine,
    QuotePayment,
    ReceiptLine,
    Rfq,
    RfqClause,
    RfqCriterion,
    RfqDocument,
    RfqLine,
    RfqRequirement,
    Rma,
    RunItem,
    Substitution,
    UnitVerdict,
    Vendor,
    VendorContact,
    VendorDocument,
    WarrantyTerms,
)
from procurement.models.quotes import LineKind, PriceBreak
from procurement.per import EARLIER, Per
from procurement.promises import BENCHMARKS
from procurement.promises import OF as PROMISED_OF
from procurement.requirements import RequirementKind, plain
from procurement.selectors.award_facts import award_facts
from procurement.selectors.awarded import order_old_rates, order_rows
from procurement.selectors.clauses import clause_rows
from procurement.selectors.delivery_risk import order_risk
from procurement.selectors.draw_downs import commitments
from procurement.selectors.letters import Sending, sendings
from procurement.selectors.milestones import milestone_states
from procurement.selectors.precedence import order_differences
from procurement.selectors.progress import LineProgress, line_progress
from procurement.selectors.requirements import criteria_met
from procurement.selectors.vendor_scores import vendor_scores
from procurement.services.quotes import WARRANTY_FIELDS
from procurement.services.vendors import FIELDS as VENDOR_FIELDS
from procurement.totals import DocumentTotals

HEAD = ["id", "status", "version", "status_since", "created_at"]


def said(data: dict[str, Any]) -> str:
    """A stored message in the reader's language."""
    return Message.from_json(data).render(gettext) if data else ""


class MoneySerializer(serializers.Serializer[Any]):
    amount = serializers.CharField()
    currency = serializers.CharField()


class TotalsSerializer(serializers.Serializer[Any]):
    net = MoneySerializer()
    tax = MoneySerializer()
    gross = MoneySerializer()


def totals(value: DocumentTotals) -> dict[str, Any]:
    """Net, tax by rate, gross, exactly as the pages show them."""
    return {
        "net": money(value.net),
        "tax": money(value.tax),
        "gross": money(value.gross),
        "taxes": [
            {"rate": f"{tax.rate:f}", "base": money(tax.base), "tax": money(tax.tax)}
            for tax in value.taxes
        ],
    }


def remembered(serializer: Any, name: str) -> dict[Any, Any]:
    """What one response worked out already, so that a list does not ask the same for each row."""
    context: dict[str, Any] = serializer.root._context
    found: dict[Any, Any] = context.setdefault(name, {})
    return found


def met_criteria(serializer: Any, quote: Quote) -> dict[str, Any]:
    """Each criterion with the quote's answer; the organisation is read once for all rows of a response."""
    cache = remembered(serializer, "organisation")
    if "row" not in cache:
        cache["row"] = organisation()
    return criteria_met(quote, cache["row"]).to_json()


class Named(serializers.StringRelatedField[Any]):
    """A related row as its name."""


# --- vendors and RFQs ----------------------------------------------------------------------------------------------


class ContactSerializer(serializers.ModelSerializer[VendorContact]):
    class Meta:
        model = VendorContact
        fields = ["name", "role", "email", "phone"]


class VendorDocumentSerializer(serializers.ModelSerializer[VendorDocument]):
    sha256 = serializers.CharField(source="file.sha256", default=None, read_only=True)
    days_left = serializers.IntegerField(read_only=True, allow_null=True)

    class Meta:
        model = VendorDocument
        fields = [
            "id",
            "kind",
            "title",
            "number",
            "issued_on",
            "expires_on",
            "days_left",
            "sha256",
            "retired_at",
        ]


class VendorSerializer(serializers.ModelSerializer[Vendor]):
    contacts = ContactSerializer(many=True, read_only=True)
    documents = VendorDocumentSerializer(many=True, read_only=True)
    history = serializers.SerializerMethodField(
        help_text="Score and its parts with the counts behind them; null where there are too few points"
    )

    class Meta:
        model = Vendor
        fields = [*HEAD, *VENDOR_FIELDS, "blocked_reason", "contacts", "documents", "history"]
        read_only_fields = [*HEAD, "blocked_reason"]
        validators: list[Any] = []
        extra_kwargs: dict[str, Any] = {"name": {"validators": []}}

    @extend_schema_field(serializers.DictField())
    def get_history(self, vendor: Vendor) -> dict[str, Any]:
        """Of all vendors of the response at once."""
        cache = remembered(self, "history")
        if vendor.pk not in cache:
            listed = getattr(self.parent, "instance", None)
            together = listed if isinstance(listed, list | tuple) else [vendor]
            cache |= vendor_scores(together, api_user(self.context["request"]))
        return cache[vendor.pk].to_json()  # type: ignore[no-any-return]


class RfqLineSerializer(serializers.ModelSerializer[RfqLine]):
    class Meta:
        model = RfqLine
        fields = ["position", "request", "accelerator_slug", "accelerators", "description"]


class CriterionSerializer(serializers.ModelSerializer[RfqCriterion]):
    class Meta:
        model = RfqCriterion
        fields = ["kind", "weight"]


class RequirementSerializer(serializers.ModelSerializer[RfqRequirement]):
    """A criterion to be reached. `lines` are positions of the RFQ's lines; none: all of them."""

    value = serializers.SerializerMethodField("get_figure")
    text = serializers.SerializerMethodField(help_text="The criterion as a sentence")

    class Meta:
        model = RfqRequirement
        fields = ["position", "kind", "benchmark", "value", "unit", "per", "day", "lines", "text"]

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_figure(self, row: RfqRequirement) -> str | None:
        return None if row.value is None else plain(row.value)

    @extend_schema_field(str)
    def get_text(self, row: RfqRequirement) -> str:
        return row.words.render(gettext)


class RfqClauseSerializer(serializers.ModelSerializer[RfqClause]):
    """A clause as it stands in the RFQ, in both languages."""

    code = serializers.CharField(source="clause.code")
    version = serializers.IntegerField(source="clause.version")

    class Meta:
        model = RfqClause
        fields = [
            "position",
            "code",
            "version",
            "title_en",
            "title_zh",
            "text_en",
            "text_zh",
            "asks",
        ]


class RfqDocumentSerializer(serializers.ModelSerializer[RfqDocument]):
    sha256 = serializers.CharField(source="file.sha256", default=None, read_only=True)

    class Meta:
        model = RfqDocument
        fields = ["id", "language", "revision", "deadline", "sha256"]


class RequirementInput(serializers.Serializer[Any]):
    """A figure in `value` and `unit`, or a `day` for a delivery."""

    kind = serializers.ChoiceField(choices=[str(kind) for kind in RequirementKind])
    benchmark = serializers.CharField(required=False, allow_blank=True)
    value = serializers.CharField(required=False, allow_null=True, help_text="As text: exact")
    unit = serializers.CharField(required=False, allow_blank=True)
    per = serializers.ChoiceField(
        choices=[*(str(per) for per in Per), *EARLIER], required=False,
        help_text="`node` is the earlier name of `server`",
    )  # fmt: skip
    day = serializers.DateField(required=False, allow_null=True)
    lines = serializers.ListField(child=serializers.IntegerField(), required=False)


class AnswerInput(serializers.Serializer[Any]):
    """What a quote says of one criterion: its figure or day, or only whether it is met."""

    requirement = serializers.IntegerField(help_text="Number of the criterion")
    value = serializers.CharField(required=False, allow_null=True, help_text="As text: exact")
    day = serializers.DateField(required=False, allow_null=True)
    meets = serializers.BooleanField(required=False, allow_null=True)
    note = serializers.CharField(required=False, allow_blank=True)


class StatementSerializer(serializers.ModelSerializer[ConflictStatement]):
    person = Named()

    class Meta:
        model = ConflictStatement
        fields = ["person", "has_conflict", "vendor", "text", "at"]


class ConcessionSerializer(serializers.ModelSerializer[Concession]):
    vendor_name = serializers.CharField(source="vendor.name", read_only=True)
    recorded_by = Named()

    class Meta:
        model = Concession
        fields = ["round", "vendor", "vendor_name", "subject", "from_value", "to_value", "amount", "currency",
                  "conceded_by", "agreed_on", "recorded_by", "recorded_at"]  # fmt: skip


def burn_in_hours(of: serializers.BaseSerializer[Any]) -> int:
    """Of the purchasing policy, read once for all the rows of an answer: the context is theirs together. [h]"""
    shared = cast(dict[str, Any], of.context)
    if "burn_in_hours" not in shared:
        shared["burn_in_hours"] = PurchasingPolicy.current().burn_in_hours
    return int(shared["burn_in_hours"])


class RfqSerializer(serializers.ModelSerializer[Rfq]):
    owner = Named()
    lines = RfqLineSerializer(many=True, read_only=True)
    criteria = CriterionSerializer(many=True, read_only=True)
    requirements = RequirementSerializer(many=True, read_only=True)
    clauses = RfqClauseSerializer(many=True, read_only=True)
    clause_warnings = serializers.SerializerMethodField(
        help_text="By clause: where its words and what it asks as data, or its two languages, tell different figures"
    )
    documents = RfqDocumentSerializer(many=True, read_only=True)
    statements = StatementSerializer(many=True, read_only=True)
    vendors = serializers.SerializerMethodField()
    quotes_received = serializers.SerializerMethodField()

    class Meta:
        model = Rfq
        fields = [
            *HEAD, "number", "title", "owner", "sealed", "deadline", "deadline_zone", "deliver_by",
            "warranty_months", "warranty_start", "terms", "criteria_hash", "opened_at", "lines",
            "criteria", "requirements", "clauses", "clause_warnings", "documents", "statements", "vendors",
            "quotes_received", "review_action",
        ]  # fmt: skip

    def get_clause_warnings(self, rfq: Rfq) -> dict[str, list[str]]:
        rows = clause_rows(rfq, burn_in_hours(self))
        return {row.clause.code: warnings for row, warnings in rows if warnings}

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_vendors(self, rfq: Rfq) -> list[int]:
        return [invitation.vendor_id for invitation in rfq.invitations.all()]

    @extend_schema_field(int)
    def get_quotes_received(self, rfq: Rfq) -> int:
        gone = ("superseded", "withdrawn", "late")
        return sum(quote.status not in gone for quote in rfq.quotes.all())


class BreakSerializer(serializers.ModelSerializer[PriceBreak]):
    class Meta:
        model = PriceBreak
        fields = ["from_quantity", "to_quantity", "unit_price"]


class PromiseSerializer(serializers.ModelSerializer[PerformancePromise]):
    benchmark = serializers.ChoiceField(choices=list(BENCHMARKS))  # one set of names for all

    class Meta:
        model = PerformancePromise
        fields = ["benchmark", "name", "value", "unit", "per", "tolerance_rate", "blocking"]


class QuoteLineSerializer(serializers.ModelSerializer[QuoteLine]):
    rfq_line = serializers.IntegerField(source="rfq_line.position", default=None)
    breaks = BreakSerializer(many=True)
    promises = PromiseSerializer(many=True)

    class Meta:
        model = QuoteLine
        fields = [
            "id", "position", "rfq_line", "kind", "description", "manufacturer", "part_number", "quantity",
            "unit", "unit_price", "tax_rate", "serialised", "accelerator_slug", "accelerators_per_item",
            "list_price", "discount_rate", "bundle", "alternative_to", "breaks",
            "promises",
        ]  # fmt: skip


class WarrantySerializer(serializers.ModelSerializer[WarrantyTerms]):
    class Meta:
        model = WarrantyTerms
        fields = list(WARRANTY_FIELDS)


class PaymentTermSerializer(serializers.ModelSerializer[QuotePayment]):
    class Meta:
        model = QuotePayment
        fields = ["position", "event", "percent", "days", "label"]


class QuoteSerializer(serializers.ModelSerializer[Quote]):
    """While the bids are sealed, or for readers who do not read prices: who answered, when, and the hash."""

    vendor_name = serializers.CharField(source="vendor.name", read_only=True)
    lines = QuoteLineSerializer(many=True, read_only=True)
    warranty = WarrantySerializer(read_only=True)
    payments = PaymentTermSerializer(many=True, read_only=True)
    criteria = serializers.SerializerMethodField(
        help_text="Each criterion with the answer: meets, misses or unsaid"
    )
    totals = serializers.SerializerMethodField()
    expired = serializers.BooleanField(source="is_expired", read_only=True)

    OPEN_FIELDS = (
        "id",
        "status",
        "version",
        "rfq",
        "vendor",
        "vendor_name",
        "revision",
        "received_at",
        "content_hash",
    )

    class Meta:
        model = Quote
        fields = [
            *HEAD, "rfq", "vendor", "vendor_name", "revision", "reference", "currency", "tax_mode",
            "valid_until", "expired", "lead_time_days", "partial_delivery", "incoterm", "payment_terms", "notes",
            "received_at", "content_hash", "reason", "lines", "warranty", "payments", "criteria",
            "totals",
        ]  # fmt: skip

    @extend_schema_field(serializers.DictField())
    def get_criteria(self, quote: Quote) -> dict[str, Any]:
        return met_criteria(self, quote)

    @extend_schema_field(TotalsSerializer)
    def get_totals(self, quote: Quote) -> dict[str, Any]:
        return totals(quote.totals())

    def to_representation(self, instance: Quote) -> dict[str, Any]:
        user = api_user(self.context["request"])
        cache = remembered(self, "may_read")
        if instance.rfq_id not in cache:
            cache[instance.rfq_id] = policies.can_read_prices(user, instance.rfq)
        if cache[instance.rfq_id]:
            return super().to_representation(instance)
        hidden = {
            name: field.to_representation(value)
            if (value := field.get_attribute(instance)) is not None
            else None
            for name, field in self.fields.items()
            if name in self.OPEN_FIELDS and name not in ("rfq", "vendor")
        }
        return hidden | {"rfq": instance.rfq_id, "vendor": instance.vendor_id, "sealed": True}


class AwardLineSerializer(serializers.ModelSerializer[AwardLine]):
    class Meta:
        model = AwardLine
        fields = ["quote_line", "quantity"]


class AwardDocumentSerializer(serializers.ModelSerializer[AwardDocument]):
    vendor = serializers.IntegerField(source="quote.vendor_id", default=None, read_only=True)
    sha256 = serializers.CharField(source="file.sha256", default=None, read_only=True)

    class Meta:
        model = AwardDocument
        fields = ["id", "kind", "language", "vendor", "sha256"]


class LetterSerializer(serializers.Serializer[Any]):
    """A letter to a vendor that was not chosen; sent is put into the outbox, mailed is taken by the mail server."""

    document = serializers.IntegerField(source="document.pk")
    vendor = serializers.IntegerField(source="vendor.pk")
    language = serializers.CharField(source="document.language")
    address = serializers.SerializerMethodField(help_text="Empty: no contact of the vendor has one")
    sent_at = serializers.DateTimeField(source="mail.created_at", default=None)
    mailed_at = serializers.DateTimeField(source="mail.mailed_at", default=None)

    @extend_schema_field(str)
    def get_address(self, row: Sending) -> str:
        return row.mail.address if row.mail else row.address


class AwardSerializer(serializers.ModelSerializer[Award]):
    site = serializers.CharField(source="site.name", default=None, read_only=True, allow_null=True)
    proposed_by = Named()
    decided_by = Named()
    lines = AwardLineSerializer(many=True, read_only=True)
    orders = serializers.PrimaryKeyRelatedField[Any](many=True, read_only=True)
    documents = AwardDocumentSerializer(many=True, read_only=True)
    letters = serializers.SerializerMethodField(
        help_text="Letters to vendors that were not chosen and how far they are; with one award only, null in lists"
    )
    facts = serializers.SerializerMethodField(
        help_text="What is decided on, against what was approved; with one award only, null in lists"
    )

    class Meta:
        model = Award
        fields = [
            *HEAD, "rfq", "reason", "to_none", "site", "proposed_by", "decided_by", "decided_at", "decision_reason",
            "lines", "orders", "record_hash", "documents", "letters", "facts",
        ]  # fmt: skip

    @extend_schema_field(serializers.DictField(allow_null=True))
    def get_facts(self, award: Award) -> dict[str, Any] | None:
        return award_facts(award).to_json() if self.parent is None else None

    @extend_schema_field(LetterSerializer(many=True, allow_null=True))
    def get_letters(self, award: Award) -> list[dict[str, Any]] | None:
        if self.parent is not None:
            return None
        shown: list[dict[str, Any]] = LetterSerializer(sendings(award), many=True).data
        return shown


# --- orders to invoices --------------------------------------------------------------------------------------------


class LineProgressSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    position = serializers.IntegerField()
    request = serializers.IntegerField(allow_null=True)
    description = serializers.CharField()
    unit = serializers.CharField()
    ordered = serializers.CharField()
    received = serializers.CharField()
    accepted = serializers.CharField()
    matched = serializers.CharField()
    paid = serializers.CharField()
    unit_price = serializers.CharField(required=False)
    tax_rate = serializers.CharField(required=False)


def progress_json(row: LineProgress, *, prices: bool) -> dict[str, Any]:
    line = row.line
    data: dict[str, Any] = {
        "id": line.pk,
        "position": line.position,
        "request": line.request_id,
        "description": line.description,
        "unit": line.unit,
        "serialised": line.serialised,
        "accelerators_per_item": line.accelerators_per_item,
        "ordered": str(row.ordered),
        "received": str(row.received),
        "accepted": str(row.accepted),
        "accepted_units": row.accepted_units,
        "matched": str(row.matched),
        "paid": str(row.paid),
    }
    if prices:
        data |= {"unit_price": f"{line.unit_price:.6f}", "tax_rate": f"{line.tax_rate:.5f}"}
    return data


class OrderSerializer(serializers.ModelSerializer[PurchaseOrder]):
    """Prices only for those who take part in buying; quantities for all who see the order."""

    vendor_name = serializers.CharField(source="vendor.name", read_only=True)
    site = serializers.CharField(
        source="site.name", default=None, read_only=True, help_text="Where it is to be delivered"
    )
    issued_by = Named()
    lines = serializers.SerializerMethodField()
    totals = serializers.SerializerMethodField()
    against_approved = serializers.SerializerMethodField(
        help_text="By request: approved, ordered with tax, difference; with one order only, null in lists"
    )
    commitments = serializers.SerializerMethodField(
        help_text="Cloud lines with what was drawn by month; with one order only, null in lists"
    )
    milestones = serializers.SerializerMethodField(
        help_text="Parts of the payment with amounts; with one order only, null in lists"
    )
    delivery_risk = serializers.SerializerMethodField(
        help_text="When it will come by what came before, and the days teams need it by; with one order only"
    )
    old_rates = serializers.SerializerMethodField(
        help_text="Exchange rates it would use today that the rules call old; with one order only, null in lists"
    )
    differences = serializers.SerializerMethodField(
        help_text="Terms of which the quote says less than was asked, and which holds (`clauses`, `quote`, null: the "
        "order does not say); with one order only, null in lists and without prices"
    )

    class Meta:
        model = PurchaseOrder
        fields = [
            *HEAD, "number", "award", "quote", "vendor", "vendor_name", "currency", "tax_mode", "revision",
            "issued_by", "issued_at", "expected_on", "promised_on", "site", "lines", "totals",
            "commitments", "milestones", "against_approved", "old_rates", "delivery_risk",
            "precedence", "differences",
        ]  # fmt: skip

    def _may_read(self, order: PurchaseOrder) -> bool:
        cache = remembered(self, "may_read_orders")
        if order.pk not in cache:
            user = api_user(self.context["request"])
            cache[order.pk] = policies.can_read_order_prices(user, order)
        return bool(cache[order.pk])

    def _progress(self, order: PurchaseOrder) -> list[LineProgress]:
        """Of all orders of the response at once."""
        cache = remembered(self, "progress")
        if order.pk not in cache:
            listed = getattr(self.parent, "instance", None)
            together = listed if isinstance(listed, list | tuple) else [order]
            cache |= {one.pk: [] for one in together}
            for row in line_progress(*together).values():
                cache[row.line.order_id].append(row)
        found: list[LineProgress] = cache[order.pk]
        return found

    @extend_schema_field(LineProgressSerializer(many=True))
    def get_lines(self, order: PurchaseOrder) -> list[dict[str, Any]]:
        prices = self._may_read(order)
        return [progress_json(row, prices=prices) for row in self._progress(order)]

    @extend_schema_field(TotalsSerializer(allow_null=True))
    def get_totals(self, order: PurchaseOrder) -> dict[str, Any] | None:
        if not self._may_read(order):
            return None
        return totals(order.totals([row.line for row in self._progress(order)]))

    @extend_schema_field(serializers.ListField(child=serializers.DictField(), allow_null=True))
    def get_differences(self, order: PurchaseOrder) -> list[dict[str, Any]] | None:
        if self.parent is not None or not self._may_read(order):
            return None
        return [row.to_json() for row in order_differences(order)]

    @extend_schema_field(serializers.DictField(allow_null=True))
    def get_delivery_risk(self, order: PurchaseOrder) -> dict[str, Any] | None:
        risk = order_risk(order) if self.parent is None else None
        return None if risk is None else risk.to_json()

    @extend_schema_field(serializers.ListField(child=serializers.DictField(), allow_null=True))
    def get_commitments(self, order: PurchaseOrder) -> list[dict[str, Any]] | None:
        if self.parent is not None:
            return None
        return [row.to_json() for row in commitments(self._progress(order))]

    @extend_schema_field(serializers.ListField(child=serializers.DictField(), allow_null=True))
    def get_milestones(self, order: PurchaseOrder) -> list[dict[str, Any]] | None:
        if self.parent is not None or not self._may_read(order):
            return None
        return [state.to_json() for state in milestone_states(order)]

    @extend_schema_field(serializers.ListField(child=serializers.DictField(), allow_null=True))
    def get_old_rates(self, order: PurchaseOrder) -> list[dict[str, Any]] | None:
        if self.parent is not None or not self._may_read(order):
            return None
        return [row.to_json() for row in order_old_rates(order)]

    @extend_schema_field(serializers.ListField(child=serializers.DictField(), allow_null=True))
    def get_against_approved(self, order: PurchaseOrder) -> list[dict[str, Any]] | None:
        if self.parent is not None or not self._may_read(order):
            return None
        return [row.to_json() for row in order_rows(order)]


class AmendmentSerializer(serializers.ModelSerializer[OrderRevision]):
    proposed_by = Named()
    decided_by = Named()

    class Meta:
        model = OrderRevision
        fields = ["id", "order", "number", "status", "reason", "lines", "payments", "gross_amount", "proposed_by",
                  "proposed_at", "decided_by", "decided_at", "decision_reason"]  # fmt: skip


class SubstitutionSerializer(serializers.ModelSerializer[Substitution]):
    order = serializers.IntegerField(source="order_line.order_id", read_only=True)
    position = serializers.IntegerField(source="order_line.position", read_only=True)
    decided_by = Named()

    class Meta:
        model = Substitution
        fields = [*HEAD, "order", "position", "part_number", "description", "reason", "decided_by",
                  "decision_reason"]  # fmt: skip


class ReceiptLineSerializer(serializers.ModelSerializer[ReceiptLine]):
    position = serializers.IntegerField(source="order_line.position")

    class Meta:
        model = ReceiptLine
        fields = ["position", "quantity", "substitution", "missing_units", "missing_reason"]


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    received_by = Named()
    lines = ReceiptLineSerializer(many=True, read_only=True)

    class Meta:
        model = Delivery
        fields = [
            *HEAD, "order", "vendor", "note_number", "expected_on", "shipped_on", "arrived_on",
            "received_by", "packaging_intact", "shock_label_clear", "notes", "reason", "lines",
        ]  # fmt: skip


class InvoiceLineSerializer(serializers.ModelSerializer[InvoiceLine]):
    position = serializers.IntegerField(source="order_line.position")

    class Meta:
        model = InvoiceLine
        fields = ["position", "quantity", "unit_price", "tax_rate"]


class InvoicePartSerializer(serializers.ModelSerializer[InvoicePart]):
    position = serializers.IntegerField(source="milestone.position")

    class Meta:
        model = InvoicePart
        fields = ["position", "amount"]


class PaymentSerializer(serializers.ModelSerializer[Payment]):
    class Meta:
        model = Payment
        fields = ["number", "paid_on", "amount", "rate", "reference", "settles"]


class InvoiceSerializer(serializers.ModelSerializer[Invoice]):
    matched_by = Named()
    approved_by = Named()
    lines = InvoiceLineSerializer(many=True, read_only=True)
    milestones = InvoicePartSerializer(many=True, read_only=True, source="parts")
    payments = PaymentSerializer(
        many=True, read_only=True, help_text="Each with its own day, rate and reference"
    )
    paid_on = serializers.DateField(
        read_only=True, allow_null=True, help_text="Of the last payment"
    )
    exceptions = serializers.SerializerMethodField()

    class Meta:
        model = Invoice
        fields = [
            *HEAD, "order", "vendor", "number", "dated_on", "currency", "tax_mode", "stated_tax",
            "stated_gross", "exceptions", "override_reason", "matched_by", "approved_by", "paid_at", "paid_on",
            "paid_amount", "lines",
            "milestones", "payments",
        ]  # fmt: skip

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_exceptions(self, invoice: Invoice) -> list[str]:
        return [said(message) for message in invoice.exceptions]


# --- cards and proof -----------------------------------------------------------------------------------------------


class AssetWarrantySerializer(serializers.ModelSerializer[AssetWarranty]):
    class Meta:
        model = AssetWarranty
        fields = [
            "basis",
            "source",
            "start_trigger",
            "months",
            "service_level",
            "doa_days",
            "registration",
            "starts_on",
            "ends_on",
        ]


class AssetSerializer(serializers.ModelSerializer[Asset]):
    warranties = AssetWarrantySerializer(many=True, read_only=True)

    class Meta:
        model = Asset
        fields = [
            *HEAD, "kind", "manufacturer", "serial", "model", "accelerator_slug", "uuid", "request", "parent",
            "slot", "site", "rack", "rack_unit", "received_on", "in_service_at", "out_of_service_at", "replaces",
            "warranties",
        ]  # fmt: skip


class RunItemSerializer(serializers.ModelSerializer[RunItem]):
    code = serializers.CharField(source="item.code")
    text = serializers.CharField(source="item.local_text")
    weight = serializers.CharField(source="item.weight")
    decided_from = serializers.CharField(source="item.decided_by")
    decided_by = Named()

    class Meta:
        model = RunItem
        fields = [
            "code", "text", "weight", "decided_from", "result", "value", "note", "evidence", "decided_by",
            "decided_at",
        ]  # fmt: skip


class BurnInSerializer(serializers.ModelSerializer[BurnInRun]):
    operator = Named()
    items = RunItemSerializer(many=True, read_only=True)

    class Meta:
        model = BurnInRun
        fields = [
            *HEAD, "asset", "delivery", "attempt", "operator", "required_seconds", "covered_seconds",
            "started_at", "ended_at", "reason", "items",
        ]  # fmt: skip


class UnitVerdictSerializer(serializers.ModelSerializer[UnitVerdict]):
    serial = serializers.CharField(source="asset.serial")

    class Meta:
        model = UnitVerdict
        fields = ["asset", "serial", "bound_by", "verdict", "reasons", "figures", "covered_seconds"]


class EvidenceSerializer(serializers.ModelSerializer[EvidenceFile]):
    name = serializers.CharField(source="file.name", read_only=True)
    verdicts = UnitVerdictSerializer(many=True, read_only=True)
    flags = serializers.SerializerMethodField()

    class Meta:
        model = EvidenceFile
        fields = [
            "id", "delivery", "node", "name", "sha256", "state", "format", "verdict", "flags", "policy_version",
            "reader_version", "job", "created_at", "read_at", "locked_at", "verdicts",
        ]  # fmt: skip

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_flags(self, evidence: EvidenceFile) -> list[str]:
        return [said(flag) for flag in evidence.flags]


class AcceptanceUnitSerializer(serializers.ModelSerializer[AcceptanceUnit]):
    serial = serializers.CharField(source="asset.serial")

    class Meta:
        model = AcceptanceUnit
        fields = ["asset", "serial", "run", "included", "reason"]


class AcceptanceSerializer(serializers.ModelSerializer[Acceptance]):
    proposed_by = Named()
    decided_by = Named()
    units = AcceptanceUnitSerializer(many=True, read_only=True)

    class Meta:
        model = Acceptance
        fields = [
            *HEAD, "number", "delivery", "proposed_by", "decided_by", "decided_at", "reason",
            "content_hash", "evidence_index", "units",
        ]  # fmt: skip


class RmaSerializer(serializers.ModelSerializer[Rma]):
    class Meta:
        model = Rma
        fields = [
            *HEAD, "number", "asset", "vendor", "run", "fault_on", "fault", "basis", "evidence", "bundle_sha256",
            "vendor_number", "vendor_answer", "tracking", "filed_at", "shipped_at", "resolved_at", "outcome",
            "replacement",
        ]  # fmt: skip


class PurchasingPolicySerializer(serializers.ModelSerializer[PurchasingPolicy]):
    # Plain numbers: the service holds the limits and names field, value and limit.
    openers = serializers.IntegerField()
    minimum_vendors = serializers.IntegerField()
    reason_length = serializers.IntegerField()
    burn_in_hours = serializers.IntegerField()
    over_delivery = serializers.DecimalField(max_digits=18, decimal_places=4)
    price_tolerance = serializers.DecimalField(max_digits=18, decimal_places=4)
    proposed_by = Named(read_only=True)

    class Meta:
        model = PurchasingPolicy
        fields = ["sealing", "openers", "minimum_vendors", "reason_length", "over_delivery", "price_tolerance",
                  "burn_in_hours", "conflict_statements", "version", "proposed", "proposed_from",
                  "proposed_by", "proposed_at"]  # fmt: skip
        read_only_fields = ["version", "proposed", "proposed_from", "proposed_at"]


# --- what is sent in -----------------------------------------------------------------------------------------------


class RfqInput(serializers.Serializer[Any]):
    title = serializers.CharField(max_length=160)
    requests = serializers.ListField(child=serializers.IntegerField(), allow_empty=False)
    vendors = serializers.ListField(child=serializers.IntegerField(), default=list)
    deadline = serializers.DateTimeField(help_text="With its offset: 2027-01-20T17:00:00+08:00")
    deadline_zone = serializers.CharField(required=False, default="")
    sealed = serializers.BooleanField(required=False, allow_null=True, default=None)
    weights = serializers.DictField(child=serializers.IntegerField(), required=False)
    deliver_by = serializers.DateField(required=False)
    warranty_months = serializers.IntegerField(required=False)
    warranty_start = serializers.CharField(required=False)
    terms = serializers.CharField(required=False, allow_blank=True)
    requirements = RequirementInput(
        many=True, required=False, help_text="Left out: those of the approved plans"
    )
    clauses = serializers.ListField(
        child=serializers.CharField(), required=False,
        help_text="Short names from the clause library; left out: those that are preset",
    )  # fmt: skip


class RfqEdit(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, max_length=160)
    vendors = serializers.ListField(child=serializers.IntegerField(), required=False)
    deadline = serializers.DateTimeField(required=False)
    weights = serializers.DictField(child=serializers.IntegerField(), required=False)
    deliver_by = serializers.DateField(required=False, allow_null=True)
    warranty_months = serializers.IntegerField(required=False)
    warranty_start = serializers.CharField(required=False)
    terms = serializers.CharField(required=False, allow_blank=True)
    requirements = RequirementInput(many=True, required=False)
    clauses = serializers.ListField(child=serializers.CharField(), required=False)


class BreakInput(serializers.Serializer[Any]):
    from_quantity = serializers.IntegerField()
    to_quantity = serializers.IntegerField(allow_null=True, default=None)
    unit_price = serializers.CharField()


class PromiseInput(serializers.Serializer[Any]):
    """Throughput that the vendor promises, of one card or one server."""

    benchmark = serializers.ChoiceField(choices=list(BENCHMARKS))
    name = serializers.CharField(
        required=False, allow_blank=True, max_length=120,
        help_text="As the vendor calls it; needed for mlperf and other: model, precision, batch",
    )  # fmt: skip
    value = serializers.CharField(help_text="As text")
    unit = serializers.CharField(
        required=False, allow_blank=True, help_text="Gflop/s, Tflop/s, GB/s, samples/s, tokens/s"
    )
    per = serializers.ChoiceField(choices=[str(per) for per in PROMISED_OF])
    tolerance_rate = serializers.CharField(
        required=False, allow_null=True, help_text="A share; 0.03 unless said"
    )
    blocking = serializers.BooleanField(
        required=False, default=True, help_text="Whether it decides acceptance"
    )


class QuoteLineInput(serializers.Serializer[Any]):
    """Numbers as strings: a float is not exact and is refused."""

    rfq_line = serializers.IntegerField(
        required=False, allow_null=True, help_text="Position of the asked line"
    )
    kind = serializers.ChoiceField(
        choices=LineKind.choices, required=False, help_text="Must be said"
    )
    description = serializers.CharField(max_length=300)
    manufacturer = serializers.CharField(required=False, allow_blank=True)
    part_number = serializers.CharField(required=False, allow_blank=True)
    quantity = serializers.CharField()
    unit = serializers.CharField(required=False)
    unit_price = serializers.CharField(required=False, allow_null=True)
    tax_rate = serializers.CharField(
        required=False, help_text="Must be said. A share: 0.13 is 13 %, 0 is no tax"
    )
    serialised = serializers.BooleanField(
        required=False, allow_null=True, default=None, help_text="Must be said"
    )
    accelerator_slug = serializers.CharField(required=False, allow_blank=True)
    accelerators_per_item = serializers.IntegerField(
        required=False, help_text="Must be said of servers, cards and what answers an asked line"
    )
    list_price = serializers.CharField(required=False, allow_null=True)
    discount_rate = serializers.CharField(
        required=False, allow_null=True, help_text="Off the list price, a share: 0.10 is 10 %"
    )
    bundle = serializers.CharField(
        required=False, allow_blank=True, max_length=80, help_text="Name of lines sold together"
    )
    alternative_to = serializers.IntegerField(
        required=False, allow_null=True, help_text="Position of the line it could replace"
    )
    breaks = BreakInput(many=True, required=False)
    promises = PromiseInput(many=True, required=False)


class TermInput(serializers.Serializer[Any]):
    """A part of the payment: so many per cent, so many days after its event."""

    event = serializers.ChoiceField(choices=[str(event) for event in PaymentEvent])
    percent = serializers.CharField(help_text="As text: 30 is 30 %")
    days = serializers.IntegerField(required=False, default=0)
    label = serializers.CharField(  # type: ignore[assignment]  # a field's name, not the serializer's label
        required=False, allow_blank=True, default="", max_length=80
    )


class OfferInput(serializers.Serializer[Any]):
    """What a vendor offers."""

    currency = serializers.CharField()
    tax_mode = serializers.CharField(required=False)
    valid_until = serializers.DateField()
    lead_time_days = serializers.IntegerField()
    partial_delivery = serializers.BooleanField(required=False, allow_null=True)
    lines = QuoteLineInput(many=True)
    warranty = WarrantySerializer()
    payments = TermInput(many=True, required=False)
    answers = AnswerInput(many=True, required=False)
    reference = serializers.CharField(required=False, allow_blank=True)
    incoterm = serializers.CharField(required=False, allow_blank=True)
    payment_terms = serializers.CharField(required=False, allow_blank=True)
    notes = serializers.CharField(required=False, allow_blank=True)


class QuoteInput(OfferInput):
    vendor = serializers.IntegerField()


class AwardLineInput(serializers.Serializer[Any]):
    quote_line = serializers.IntegerField()
    quantity = serializers.CharField()


class AwardInput(serializers.Serializer[Any]):
    """One quote whole, lines of several with quantities, or none."""

    to_none = serializers.BooleanField(required=False, default=False)
    quote = serializers.IntegerField(required=False, allow_null=True, default=None)
    lines = AwardLineInput(many=True, required=False)
    site = serializers.CharField(
        required=False, allow_blank=True, default="",
        help_text="Name of the site where it will stand; empty: where the plans of the requests stand",
    )  # fmt: skip
    reason = serializers.CharField()


class LineChangeInput(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    quantity = serializers.CharField(required=False)
    unit_price = serializers.CharField(required=False)


class AmendmentInput(serializers.Serializer[Any]):
    """Lines that change, or other parts of the payment."""

    lines = LineChangeInput(many=True, required=False)
    payments = TermInput(many=True, required=False, allow_null=True, default=None)
    reason = serializers.CharField()


class AnnounceInput(serializers.Serializer[Any]):
    note_number = serializers.CharField(max_length=80)
    expected_on = serializers.DateField(required=False, allow_null=True)
    shipped_on = serializers.DateField(required=False, allow_null=True)
    serials = serializers.ListField(child=serializers.CharField(max_length=64), required=False)


class UnitInput(serializers.Serializer[Any]):
    serial = serializers.CharField(max_length=64, trim_whitespace=False)
    uuid = serializers.CharField(max_length=80, required=False, allow_blank=True, default="")
    node_serial = serializers.CharField(max_length=64, required=False, allow_blank=True, default="")
    slot = serializers.CharField(max_length=20, required=False, allow_blank=True, default="")


class ReceiptLineInput(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    quantity = serializers.CharField()
    units = UnitInput(many=True, required=False)
    missing_units = serializers.IntegerField(required=False, default=0)
    missing_reason = serializers.CharField(required=False, allow_blank=True, default="")
    part_number = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=80,
        help_text="As on the box; another one than ordered needs a consented substitution",
    )  # fmt: skip


class ReceiptInput(serializers.Serializer[Any]):
    delivery = serializers.IntegerField(
        required=False, allow_null=True, help_text="An announced one"
    )
    note_number = serializers.CharField(required=False, default="", allow_blank=True)
    arrived_on = serializers.DateField()
    shipped_on = serializers.DateField(required=False, allow_null=True)
    packaging_intact = serializers.BooleanField(required=False, allow_null=True, default=None)
    shock_label_clear = serializers.BooleanField(required=False, allow_null=True, default=None)
    notes = serializers.CharField(required=False, allow_blank=True)
    lines = ReceiptLineInput(many=True)


class InvoiceLineInput(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    quantity = serializers.CharField()
    unit_price = serializers.CharField()
    tax_rate = serializers.CharField(required=False, help_text="Must be said: 0 is no tax")


class InvoicePartInput(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    amount = serializers.CharField(help_text="With tax")


class InvoiceInput(serializers.Serializer[Any]):
    number = serializers.CharField(max_length=80)
    dated_on = serializers.DateField()
    currency = serializers.CharField()
    tax_mode = serializers.CharField(required=False)
    stated_tax = serializers.CharField()
    stated_gross = serializers.CharField()
    lines = InvoiceLineInput(many=True, required=False)
    milestones = InvoicePartInput(many=True, required=False)


class EvidenceInput(serializers.Serializer[Any]):
    file = serializers.FileField()
    node = serializers.IntegerField(required=False, allow_null=True)


class ItemsInput(serializers.Serializer[Any]):
    codes = serializers.ListField(child=serializers.CharField())
    result = serializers.ChoiceField(choices=["pass", "fail", "na"])
    note = serializers.CharField(required=False, allow_blank=True, default="")
    runs = serializers.ListField(child=serializers.IntegerField(), required=False, default=list)


class SerialsInput(serializers.Serializer[Any]):
    serials = serializers.CharField(help_text="Separated by line ends, commas or spaces")


class AttachInput(serializers.Serializer[Any]):
    evidence = serializers.ListField(child=serializers.IntegerField())
