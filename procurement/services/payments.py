"""Payments of invoices, whole or in parts; the budget's actuals follow each one."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from core.money import ExchangeRate, Money
from core.organisation import local_day, organisation, today
from planning.services.spending import post_actual
from procurement.models import Invoice, Payment
from procurement.selectors.awarded import request_shares
from procurement.selectors.progress import invoice_source
from procurement.services.invoices import take_invoice
from procurement.services.moves import move, touch
from procurement.states import InvoiceStatus


@transaction.atomic
def pay_invoice(
    *,
    invoice_id: int,
    by: User,
    paid_on: date | None = None,
    amount: Decimal | str | None = None,
    rate: Decimal | str | None = None,
    reference: str = "",
    settles: bool = False,
    version: int | None = None,
) -> Invoice:
    """Note a payment as it was: day (today when None), amount (what is open when None), and of a foreign one the rate
    that the bank took, or its reference. The budget's actuals grow by exactly this, its commitment shrinks.

    Less than what is open is a part payment: the invoice waits for the rest, unless the payment `settles` it (a
    discount, a penalty). Raises NotPermitted, InvalidTransition or InputError (a day ahead or before the order, an
    amount above what is open, a foreign payment with neither rate nor reference, a lower amount without a reference).
    """
    invoice = take_invoice(invoice_id, action="pay_invoice", by=by, version=version)
    day = _day(invoice, paid_on)
    due = invoice.open_amount
    paid = due if amount in (None, "") else Money(_number("amount", amount), invoice.currency)
    if not 0 < paid.amount <= due.amount or paid != paid.rounded():
        raise InputError(
            "amount",
            msg("The amount paid is %(value)s; it is above 0 and at most %(limit)s", value=str(paid),
                limit=str(due)),
            value=paid.amount, limit=due.amount,
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
    if paid != due and not text:
        raise InputError(
            "reference",
            msg("Less than the invoice was paid: give the bank's reference"),
            value=paid.amount,
        )
    number = invoice.payments.count() + 1
    _book(invoice, paid, number, day, took)
    Payment.objects.create(
        invoice=invoice,
        number=number,
        paid_on=day,
        amount=paid.amount,
        rate=took.rate if took else None,
        reference=text,
        settles=settles and paid != due,
        created_by=by,
    )
    invoice.paid_amount = (invoice.paid_amount or Decimal(0)) + paid.amount
    done = settles or paid == due
    if done:
        invoice.paid_at = timezone.now()
    invoice.save(update_fields=["paid_at", "paid_amount"])
    facts: dict[str, Any] = {
        "total": str(invoice.gross), "paid": str(paid), "paid_on": day.isoformat(), "payment": number,
        "rate": str(took.rate) if took else None, "reference": text,
    }  # fmt: skip
    if done:
        move(
            invoice, InvoiceStatus.PAID, by=by, action="invoice.paid", not_paid=str(due - paid), **facts
        )  # fmt: skip
    else:
        touch(invoice)
        record("invoice.part_paid", on=invoice, by=by, still_open=str(due - paid), **facts)
    return invoice


def _day(invoice: Invoice, paid_on: date | None) -> date:
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
    return day


def _book(invoice: Invoice, paid: Money, number: int, day: date, took: ExchangeRate | None) -> None:
    """Spend `paid` from the budgets of the requests that the invoice serves, exactly."""
    if invoice.parts.exists():
        lines = list(invoice.order.lines.all())
        totals = invoice.order.totals(lines)
    else:
        lines = [row.order_line for row in invoice.lines.select_related("order_line")]
        totals = invoice.totals()
    for request_id, part in request_shares(lines, totals, total=paid).items():
        if part.amount:
            # The first payment is revision 0: what was booked before there were part payments reads the same.
            post_actual(
                request_id=request_id, amount=part, source=invoice_source(invoice.pk), by=None,
                revision=number - 1, day=day, paid=took,
            )  # fmt: skip


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
