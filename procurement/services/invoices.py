"""Invoices: matched line by line against what was ordered, received and accepted, before anything is paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.core.files.base import File
from django.db import IntegrityError, transaction
from django.utils import timezone

from core.audit import record
from core.errors import DomainError, InputError
from core.files import store_upload
from core.messages import Message, msg
from core.models import User
from core.money import ExchangeRate, Money, minor_digits
from core.organisation import local_day, organisation, today
from planning.services.spending import post_actual
from procurement.models import Asset, Invoice, InvoiceLine, PurchaseOrder, PurchasingPolicy
from procurement.selectors.awarded import request_shares
from procurement.selectors.progress import invoice_source, line_progress
from procurement.serials import fold
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.quotes import exact, minor_unit
from procurement.services.warranties import start_warranties
from procurement.states import InvoiceStatus
from procurement.totals import TaxMode
from procurement.warranty_rules import StartTrigger


class DuplicateInvoice(DomainError):
    """The vendor's invoice number is here already, in whatever year."""

    code = "duplicate_invoice"


@transaction.atomic
def capture_invoice(
    *,
    order_id: int,
    number: str,
    dated_on: date,
    currency: str,
    lines: Sequence[Mapping[str, Any]],
    stated_tax: Decimal | str,
    stated_gross: Decimal | str,
    by: User,
    tax_mode: str | None = None,
    upload: File[Any] | None = None,
) -> Invoice:
    """Note an invoice as printed. Each line: `position` of the order line, `quantity`, `unit_price`, `tax_rate`.

    Raises DuplicateInvoice (409), NotPermitted, InvalidTransition or InputError.
    """
    order = take(
        PurchaseOrder.objects.select_related("vendor"), order_id, action="capture_invoice", by=by
    )
    text = " ".join(number.split())
    if not text or len(text) > 80:
        raise InputError("number", msg("An invoice has a number of 1 to 80 characters"))
    if currency != order.currency:
        raise InputError(
            "currency",
            msg("The order is in %(limit)s, the invoice in %(value)s", limit=order.currency,
                value=currency),
            value=currency, limit=order.currency,
        )  # fmt: skip
    if dated_on > today():
        raise InputError(
            "dated_on", msg("The invoice is dated ahead"), value=dated_on, limit=today()
        )
    mode = tax_mode or order.tax_mode
    if mode not in set(TaxMode):
        raise InputError(
            "tax_mode", msg("Tax is computed on the document or on each line"), value=mode
        )
    digits = minor_digits(currency)
    try:
        with transaction.atomic():
            invoice = Invoice.objects.create(
                order=order,
                vendor=order.vendor,
                number=text,
                folded_number=fold(text),
                dated_on=dated_on,
                currency=currency,
                tax_mode=mode,
                stated_tax=exact("stated_tax", stated_tax, digits=digits, line=0),
                stated_gross=exact("stated_gross", stated_gross, digits=digits, line=0),
                created_by=by,
            )
    except IntegrityError:
        raise DuplicateInvoice(
            msg("Invoice %(number)s of %(vendor)s is here already", number=text,
                vendor=order.vendor.name)
        ) from None  # fmt: skip
    _add_lines(invoice, order, lines)
    if upload is not None:
        invoice.file = store_upload(upload, by=by)
        invoice.save(update_fields=["file"])
    start_warranties(
        Asset.objects.filter(
            receipt_line__order_line__in=[row.order_line_id for row in invoice.lines.all()]
        ),
        StartTrigger.INVOICE,
        dated_on,
    )
    touch(order)
    record(
        "invoice.captured", on=invoice, by=by, order=order.number, total=str(invoice.gross),
        sha256=invoice.file.sha256 if invoice.file else None,
    )  # fmt: skip
    return invoice


def _add_lines(invoice: Invoice, order: PurchaseOrder, lines: Sequence[Mapping[str, Any]]) -> None:
    by_position = {line.position: line for line in order.lines.all()}
    seen: set[Any] = set()
    rows = []
    for given in lines:
        position = given.get("position")
        line = by_position.get(position) if isinstance(position, int) else None
        if line is None or position in seen:
            raise InputError(
                "position", msg("Line %(line)s is not a line of the order", line=str(position)),
                value=position,
            )  # fmt: skip
        seen.add(position)
        quantity = exact("quantity", given.get("quantity"), digits=3, line=line.position)
        if quantity == 0:
            continue
        rows.append(
            InvoiceLine(
                invoice=invoice,
                order_line=line,
                quantity=quantity,
                unit_price=exact(
                    "unit_price", given.get("unit_price"), digits=6, line=line.position
                ),
                tax_rate=exact("tax_rate", given.get("tax_rate", 0), digits=5, line=line.position),
            )
        )
    if not rows:
        raise InputError("lines", msg("An invoice has at least one line"), value=0, limit=1)
    InvoiceLine.objects.bulk_create(rows)


def _take(invoice_id: int, *, action: str, by: User, version: int | None = None) -> Invoice:
    """The invoice with its order locked first: matching counts what other invoices of the order hold."""
    order_id = Invoice.objects.values_list("order_id", flat=True).get(pk=invoice_id)
    order = PurchaseOrder.objects.select_for_update().get(pk=order_id)
    invoice = take(
        Invoice.objects.select_related("order", "vendor"), invoice_id, action=action, by=by,
        version=version,
    )  # fmt: skip
    invoice.order = order
    return invoice


def differences(invoice: Invoice) -> tuple[list[Message], bool]:
    """What does not match, line and field with both values; and whether a quantity is among it."""
    progress = line_progress(invoice.order)
    tolerance = PurchasingPolicy.current().price_tolerance
    found: list[Message] = []
    quantity = False
    for line in invoice.lines.select_related("order_line"):
        ordered = line.order_line
        free = progress[ordered.pk].payable
        if line.quantity > free:
            quantity = True
            found.append(
                msg(
                    "Line %(line)s: quantity %(value)s; accepted and not yet invoiced are %(limit)s",
                    line=ordered.position,
                    value=f"{line.quantity.normalize():f}",
                    limit=f"{free.normalize():f}",
                )
            )
        if line.unit_price > ordered.unit_price * (1 + tolerance):
            found.append(
                msg(
                    "Line %(line)s: unit price %(value)s; ordered at %(limit)s",
                    line=ordered.position,
                    value=f"{line.unit_price.normalize():f}",
                    limit=f"{ordered.unit_price.normalize():f}",
                )
            )
        if line.tax_rate != ordered.tax_rate:
            found.append(
                msg(
                    "Line %(line)s: tax rate %(value)s; ordered with %(limit)s",
                    line=ordered.position,
                    value=f"{line.tax_rate.normalize():f}",
                    limit=f"{ordered.tax_rate.normalize():f}",
                )
            )
    totals = invoice.totals()
    slack = minor_unit(invoice.currency) * max(len(totals.lines), 1)
    if abs(invoice.stated_tax - totals.tax.amount) > slack:
        found.append(
            msg(
                "Tax %(value)s as printed; computed are %(limit)s",
                value=str(Money(invoice.stated_tax, invoice.currency)),
                limit=str(totals.tax),
            )
        )
    if invoice.stated_gross != totals.net.amount + invoice.stated_tax:
        found.append(
            msg(
                "Total %(value)s as printed; lines and tax add up to %(limit)s",
                value=str(invoice.gross),
                limit=str(Money(totals.net.amount + invoice.stated_tax, invoice.currency)),
            )
        )
    return found, quantity


@transaction.atomic
def match_invoice(*, invoice_id: int, by: User, version: int | None = None) -> Invoice:
    """Compare with order, receipt and acceptance: matched, or an exception that names line, field and both values."""
    invoice = _take(invoice_id, action="match_invoice", by=by, version=version)
    found, quantity = differences(invoice)
    invoice.exceptions = [message.to_json() for message in found]
    invoice.quantity_blocked = quantity
    invoice.matched_by = by
    invoice.save(update_fields=["exceptions", "quantity_blocked", "matched_by"])
    to = InvoiceStatus.EXCEPTION if found else InvoiceStatus.MATCHED
    if invoice.status == to:
        touch(invoice)
        record("invoice.matching_tried", on=invoice, by=by, exceptions=[str(m) for m in found])
    else:
        move(
            invoice, to, by=by,
            action="invoice.not_matched" if found else "invoice.matched",
            exceptions=[str(message) for message in found],
        )  # fmt: skip
    return invoice


@transaction.atomic
def override_invoice(
    *, invoice_id: int, reason: str, by: User, version: int | None = None
) -> Invoice:
    """Let price or tax differences go, as a second person of finance. A quantity above acceptance never."""
    invoice = _take(invoice_id, action="override_invoice", by=by, version=version)
    text = need_reason(reason)
    _found, quantity = differences(invoice)
    if quantity:
        raise DomainError(msg("More is invoiced than was accepted: that cannot be overridden"))
    invoice.override_reason = text
    invoice.save(update_fields=["override_reason"])
    move(invoice, InvoiceStatus.MATCHED, by=by, action="invoice.overridden", reason=text)
    return invoice


@transaction.atomic
def approve_invoice(*, invoice_id: int, by: User, version: int | None = None) -> Invoice:
    """Release a matched invoice for payment."""
    invoice = _take(invoice_id, action="approve_invoice", by=by, version=version)
    invoice.approved_by = by
    invoice.save(update_fields=["approved_by"])
    move(
        invoice, InvoiceStatus.APPROVED, by=by, action="invoice.approved", total=str(invoice.gross)
    )
    return invoice


@transaction.atomic
def pay_invoice(
    *,
    invoice_id: int,
    by: User,
    paid_on: date | None = None,
    amount: Decimal | str | None = None,
    rate: Decimal | str | None = None,
    reference: str = "",
    version: int | None = None,
) -> Invoice:
    """Note the payment as it was: day (today when None), amount (the invoice's when None), and of a foreign one the
    rate that the bank took, or its reference. The budget's actuals grow by exactly this, its commitment shrinks.

    Raises NotPermitted, InvalidTransition or InputError (a day ahead or before the order, an amount above the invoice,
    a foreign payment with neither rate nor reference, a lower amount without a reference).
    """
    invoice = _take(invoice_id, action="pay_invoice", by=by, version=version)
    day = paid_on or today()
    if day > today():
        raise InputError(
            "paid_on", msg("The day of the payment is ahead"), value=day, limit=today()
        )
    issued = invoice.order.issued_at
    if issued is not None and day < local_day(issued):
        raise InputError(
            "paid_on",
            msg("The day of the payment, %(day)s, is before the order was issued, on %(issued)s",
                day=day.isoformat(), issued=local_day(issued).isoformat()),
            value=day, limit=local_day(issued),
        )  # fmt: skip
    paid = (
        invoice.gross
        if amount in (None, "")
        else Money(_number("amount", amount), invoice.currency)
    )
    if not 0 < paid.amount <= invoice.gross.amount or paid != paid.rounded():
        raise InputError(
            "amount",
            msg("The amount paid is %(value)s; it is above 0 and at most %(limit)s", value=str(paid),
                limit=str(invoice.gross)),
            value=paid.amount, limit=invoice.gross.amount,
        )  # fmt: skip
    text, base = reference.strip()[:80], organisation().currency
    took = None
    if rate not in (None, ""):
        if invoice.currency == base:
            raise InputError(
                "rate", msg("A payment in %(currency)s needs no rate", currency=base), value=rate
            )
        took = ExchangeRate(invoice.currency, base, _number("rate", rate), day, text or "bank")
    if took is None and not text and invoice.currency != base and amount is not None:
        raise InputError(
            "rate",
            msg("A payment in %(currency)s needs the rate that the bank took, or the bank's reference",
                currency=invoice.currency),
        )  # fmt: skip
    if paid != invoice.gross and not text:
        raise InputError(
            "reference",
            msg("Less than the invoice was paid: give the bank's reference"),
            value=paid.amount,
        )
    order_lines = [row.order_line for row in invoice.lines.select_related("order_line")]
    for request_id, part in request_shares(order_lines, invoice.totals(), total=paid).items():
        if part.amount:
            post_actual(
                request_id=request_id, amount=part, source=invoice_source(invoice.pk), by=None,
                day=day, paid=took,
            )  # fmt: skip
    invoice.paid_at, invoice.paid_on, invoice.paid_amount = timezone.now(), day, paid.amount
    invoice.paid_rate, invoice.payment_reference = took.rate if took else None, text
    invoice.save(
        update_fields=["paid_at", "paid_on", "paid_amount", "paid_rate", "payment_reference"]
    )
    move(
        invoice, InvoiceStatus.PAID, by=by, action="invoice.paid", total=str(invoice.gross), paid=str(paid),
        paid_on=day.isoformat(), rate=str(took.rate) if took else None, reference=text,
    )  # fmt: skip
    return invoice


def _number(field: str, value: object) -> Decimal:
    try:
        number = Decimal(str(value))
    except ArithmeticError:
        number = Decimal("NaN")
    if isinstance(value, float) or not number.is_finite() or number <= 0 or number > 10**12:
        raise InputError(
            field,
            msg("%(value)s is not an amount above 0; send it as text", value=str(value)),
            value=value,
        )
    return number


@transaction.atomic
def void_invoice(*, invoice_id: int, reason: str, by: User, version: int | None = None) -> Invoice:
    """Take an unpaid invoice out; its quantity may be invoiced again."""
    invoice = _take(invoice_id, action="void_invoice", by=by, version=version)
    invoice.reason = need_reason(reason)
    invoice.save(update_fields=["reason"])
    move(invoice, InvoiceStatus.VOID, by=by, action="invoice.voided", reason=invoice.reason)
    return invoice
