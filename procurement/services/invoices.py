"""Invoices: matched line by line against what was ordered, received and accepted, before anything is paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.core.files.base import File
from django.db import IntegrityError, transaction

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition
from core.files import store_upload
from core.messages import msg
from core.models import User
from core.money import minor_digits
from core.organisation import today
from procurement.models import Invoice, InvoiceLine, InvoicePart, PurchaseOrder
from procurement.serials import fold
from procurement.services.invoice_matching import differences
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.quote_lines import TAX_LIMIT, exact, told
from procurement.services.warranties import start_invoiced
from procurement.states import InvoiceStatus
from procurement.totals import TaxMode


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
    stated_tax: Decimal | str,
    stated_gross: Decimal | str,
    by: User,
    lines: Sequence[Mapping[str, Any]] = (),
    milestones: Sequence[Mapping[str, Any]] = (),
    tax_mode: str | None = None,
    upload: File[Any] | None = None,
) -> Invoice:
    """Note an invoice as printed. Each line: `position` of the order line, `quantity`, `unit_price`, `tax_rate`.

    An order that is paid by milestones is invoiced by `milestones` instead: `position` and `amount` with tax of each.
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
    if order.milestones.standing().exists():
        _add_parts(invoice, order, lines, milestones)
    elif milestones:
        raise InputError(
            "milestones",
            msg("The order is not paid by milestones: invoice its lines"),
            value=len(milestones),
        )
    else:
        _add_lines(invoice, order, lines)
    if upload is not None:
        invoice.file = store_upload(upload, by=by)
        invoice.save(update_fields=["file"])
    start_invoiced(order)
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
                tax_rate=exact(
                    "tax_rate",
                    told("tax_rate", given, line=line.position, limit=TAX_LIMIT),
                    digits=5,
                    line=line.position,
                ),
            )
        )
    if not rows:
        raise InputError("lines", msg("An invoice has at least one line"), value=0, limit=1)
    InvoiceLine.objects.bulk_create(rows)


def _add_parts(
    invoice: Invoice,
    order: PurchaseOrder,
    lines: Sequence[Mapping[str, Any]],
    milestones: Sequence[Mapping[str, Any]],
) -> None:
    if lines:
        raise InputError(
            "lines",
            msg("The order is paid by milestones: say how much of which one is invoiced"),
            value=len(lines),
        )
    known = {row.position: row for row in order.milestones.standing()}
    digits = minor_digits(order.currency)
    rows: dict[int, InvoicePart] = {}
    for given in milestones:
        position = given.get("position")
        row = known.get(position) if isinstance(position, int) else None
        if row is None or row.position in rows:
            raise InputError(
                "position", msg("%(value)s is not a milestone of the order", value=str(position)),
                value=position,
            )  # fmt: skip
        amount = exact("amount", given.get("amount"), digits=digits, line=row.position)
        if amount > 0:
            rows[row.position] = InvoicePart(invoice=invoice, milestone=row, amount=amount)
    if not rows:
        raise InputError("milestones", msg("An invoice has at least one line"), value=0, limit=1)
    InvoicePart.objects.bulk_create(rows.values())


def take_invoice(invoice_id: int, *, action: str, by: User, version: int | None = None) -> Invoice:
    """The invoice with its order locked first: matching counts what other invoices of the order hold."""
    order_id = Invoice.objects.values_list("order_id", flat=True).get(pk=invoice_id)
    order = PurchaseOrder.objects.select_for_update().get(pk=order_id)
    invoice = take(
        Invoice.objects.select_related("order", "vendor"), invoice_id, action=action, by=by,
        version=version,
    )  # fmt: skip
    invoice.order = order
    return invoice


@transaction.atomic
def match_invoice(*, invoice_id: int, by: User, version: int | None = None) -> Invoice:
    """Compare with order, receipt and acceptance: matched, or an exception that names line, field and both values."""
    invoice = take_invoice(invoice_id, action="match_invoice", by=by, version=version)
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
    invoice = take_invoice(invoice_id, action="override_invoice", by=by, version=version)
    text = need_reason(reason)
    _found, quantity = differences(invoice)
    if quantity:
        raise DomainError(
            msg("More is invoiced than was accepted or has opened: that cannot be overridden")
        )
    invoice.override_reason = text
    invoice.save(update_fields=["override_reason"])
    move(invoice, InvoiceStatus.MATCHED, by=by, action="invoice.overridden", reason=text)
    return invoice


@transaction.atomic
def approve_invoice(*, invoice_id: int, by: User, version: int | None = None) -> Invoice:
    """Release a matched invoice for payment."""
    invoice = take_invoice(invoice_id, action="approve_invoice", by=by, version=version)
    invoice.approved_by = by
    invoice.save(update_fields=["approved_by"])
    move(
        invoice, InvoiceStatus.APPROVED, by=by, action="invoice.approved", total=str(invoice.gross)
    )
    return invoice


@transaction.atomic
def void_invoice(*, invoice_id: int, reason: str, by: User, version: int | None = None) -> Invoice:
    """Take an unpaid invoice out; its quantity may be invoiced again."""
    invoice = take_invoice(invoice_id, action="void_invoice", by=by, version=version)
    invoice.reason = need_reason(reason)
    if invoice.payments.exists():
        raise InvalidTransition(msg("Part of the invoice is paid: it stands"))
    invoice.save(update_fields=["reason"])
    move(invoice, InvoiceStatus.VOID, by=by, action="invoice.voided", reason=invoice.reason)
    return invoice
