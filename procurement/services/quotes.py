"""Quotes: recorded as they came, versioned, never edited."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from django.core.files.base import File
from django.db import transaction
from django.db.models import Exists, Max, OuterRef
from django.utils import timezone

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition
from core.files import store_upload
from core.messages import Message, msg
from core.models import StoredFile, User
from core.money import CURRENCIES
from procurement.milestones import Term, check_terms, numbered
from procurement.models import (
    PerformancePromise,
    PriceBreak,
    Quote,
    QuoteAttachment,
    QuoteLine,
    QuotePayment,
    Rfq,
    Vendor,
    WarrantyTerms,
)
from procurement.models.quotes import ServiceLevel, Warrantor
from procurement.services.conflicts import refuse_conflict
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.quote_lines import (
    CHUNK,
    LINE_FIELDS,
    TOLD_FIELDS,
    add_lines,
    whole_number,
)
from procurement.services.requirements import add_answers, answers_json, copy_answers
from procurement.states import OrderStatus, QuoteStatus, RfqStatus, VendorStatus
from procurement.totals import TaxMode
from procurement.warranty_rules import StartTrigger

# Asked for later than the others: hashed where they are told, so that a quote of before keeps its hash.
LATER_TERMS = frozenset(
    {
        "service_hours", "response_clock", "missed_remedy", "advance_months", "advance_deposit", "doa_new",
        "replacement_warranty", "export_control", "end_of_life", "cloud_sla", "authorised_channel",
        "registration_days",
    }
)  # fmt: skip
WARRANTY_FIELDS = tuple(
    field.name for field in WarrantyTerms._meta.concrete_fields if field.name not in ("id", "quote")
)


class QuoteExpired(DomainError):
    """The quote's last valid day is over."""

    code = "quote_expired"


def require_valid(quote: Quote) -> None:
    """Raise QuoteExpired when the quote is no longer valid where its vendor is."""
    if quote.is_expired:
        raise QuoteExpired(
            msg(
                "The quote of %(vendor)s was valid until %(day)s: it has expired",
                vendor=quote.vendor.name,
                day=quote.valid_until.isoformat(),
            )
        )


def expired(quote: Quote) -> Message:
    """That the quote's last valid day is over, and what day it is where its vendor is."""
    return msg(
        "The last valid day, %(value)s, is past: it is %(limit)s where the vendor is",
        value=quote.valid_until.isoformat(),
        limit=timezone.now().astimezone(ZoneInfo(quote.vendor.time_zone)).date().isoformat(),
    )


@transaction.atomic
def record_quote(
    *,
    rfq_id: int,
    vendor_id: int,
    by: User,
    version: int | None = None,
    **offer: Any,
) -> Quote:
    """Record a vendor's quote; a standing one of the same vendor is superseded. After the deadline it is kept as late.

    `offer` is what `keep_quote` takes. Raises NotPermitted, InvalidTransition or InputError naming the line.
    """
    rfq: Rfq = take(Rfq.objects.all(), rfq_id, action="record_quote", by=by, version=version)
    invitation = rfq.invitations.select_related("vendor").filter(vendor=vendor_id).first()
    if invitation is None:
        raise InputError("vendor_id", msg("This vendor was not invited"), value=vendor_id)
    return keep_quote(rfq, invitation.vendor, by=by, **offer)


def keep_quote(
    rfq: Rfq,
    vendor: Vendor,
    *,
    by: User | None,
    currency: str,
    valid_until: date,
    lead_time_days: int,
    lines: Sequence[Mapping[str, Any]],
    warranty: Mapping[str, Any],
    payments: Sequence[Mapping[str, Any]] = (),
    answers: Sequence[Mapping[str, Any]] = (),
    tax_mode: str = TaxMode.DOCUMENT,
    files: Sequence[File[Any]] = (),
    kept_files: Sequence[StoredFile] = (),
    reference: str = "",
    incoterm: str = "",
    payment_terms: str = "",
    notes: str = "",
    partial_delivery: bool | None = None,
    **told: Any,
) -> Quote:
    """The quote of an invited vendor on a locked RFQ; the caller has asked who may. `told` goes into the trail.

    Each line is a mapping with `description`, `kind`, `quantity`, `tax_rate` (share), `serialised`, `unit_price` or
    `breaks` (from_quantity, to_quantity, unit_price) or `list_price` and `discount_rate` (share), of servers, cards and
    answers `accelerators_per_item`, and optionally `rfq_line` (position), `unit`, `accelerator_slug`, `manufacturer`,
    `part_number`, `bundle`, `alternative_to` (position). `kept_files` are stored already. `payments` are the terms of
    payment (see `procurement.milestones`); `answers` say of the RFQ's criteria (`requirement`: its number) a `value` or
    `day`, `meets` (true, false) and `note`. Raises InvalidTransition (blocked) or InputError naming the line.
    """
    require_active(vendor)
    late = rfq.is_due or rfq.status != RfqStatus.OPEN
    quote = Quote(
        rfq=rfq,
        vendor=vendor,
        currency=_currency(currency),
        tax_mode=_tax_mode(tax_mode),
        valid_until=valid_until,
        lead_time_days=whole_number("lead_time_days", lead_time_days, least=0, most=3650),
        partial_delivery=partial_delivery,
        reference=reference[:80],
        incoterm=incoterm[:40],
        payment_terms=payment_terms[:200],
        notes=notes,
        created_by=by,
    )
    if quote.is_expired:
        raise InputError("valid_until", expired(quote), value=valid_until)
    standing = None if late else _standing(rfq, vendor)
    if standing is not None:
        move(standing, QuoteStatus.SUPERSEDED, by=by, action="quote.superseded")
        quote.supersedes = standing
    quote.status = QuoteStatus.LATE if late else QuoteStatus.SUBMITTED
    quote.revision = _next_revision(rfq, vendor)
    quote.save()
    add_lines(quote, lines)
    _add_warranty(quote, warranty)
    _add_payments(quote, check_terms(payments))
    add_answers(quote, answers)
    for upload in files:
        QuoteAttachment.objects.create(quote=quote, file=store_upload(upload, by=by, field="files"))
    for stored in kept_files:
        QuoteAttachment.objects.create(quote=quote, file=stored)
    quote.content_hash = _seal(quote)
    touch(rfq)
    # The trail holds hashes, no amounts: it is readable while the bids are sealed.
    record(
        "quote.recorded" if by is not None else "quote.sent_by_vendor", on=quote, by=by,
        vendor=vendor.name, revision=quote.revision, content_hash=quote.content_hash, late=late,
        **told,
    )  # fmt: skip
    return quote


def require_active(vendor: Vendor) -> None:
    """Raise InvalidTransition for a blocked vendor, saying why it is blocked."""
    if vendor.status != VendorStatus.ACTIVE:
        raise InvalidTransition(
            msg("%(vendor)s is blocked: %(reason)s", vendor=vendor.name,
                reason=vendor.blocked_reason)
        )  # fmt: skip


def _standing(rfq: Rfq, vendor: Vendor) -> Quote | None:
    return rfq.quotes.filter(vendor=vendor, status=QuoteStatus.SUBMITTED).first()


def _next_revision(rfq: Rfq, vendor: Vendor) -> int:
    last = rfq.quotes.filter(vendor=vendor).aggregate(last=Max("revision"))["last"]
    return (last or 0) + 1


def _currency(code: str) -> str:
    if code not in CURRENCIES:
        raise InputError(
            "currency", msg("%(value)s is not a currency in use", value=code), value=code
        )
    return code


def _tax_mode(mode: str) -> str:
    if mode not in set(TaxMode):
        raise InputError(
            "tax_mode", msg("Tax is computed on the document or on each line"), value=mode
        )
    return str(mode)


def _add_warranty(quote: Quote, given: Mapping[str, Any]) -> None:
    unknown = set(given) - set(WARRANTY_FIELDS)
    if unknown:
        name = sorted(unknown)[0]
        raise InputError(name, msg("Warranty terms have no field %(name)s", name=name), value=name)
    values = {name: value for name, value in given.items() if value is not None}
    for name, choices in (
        ("start_trigger", [trigger.value for trigger in StartTrigger]),
        ("service_level", ["", *ServiceLevel.values]),
        ("warrantor", ["", *Warrantor.values]),
    ):
        value = values.get(name, "")
        if value not in choices:
            raise InputError(
                name,
                msg("%(value)s is not one of %(choices)s", value=str(value),
                    choices=", ".join(filter(None, choices))),
                value=value,
            )  # fmt: skip
    values["months"] = whole_number("months", values.get("months"), least=1, most=240)
    WarrantyTerms.objects.create(quote=quote, **values)


def _add_payments(quote: Quote, terms: Iterable[Term]) -> None:
    QuotePayment.objects.bulk_create(
        QuotePayment(quote=quote, **columns) for columns in numbered(terms)
    )


def compute_hash(quote: Quote) -> str:
    """SHA-256 of everything the vendor offers, in canonical JSON."""
    warranty = quote.warranty

    @cache
    def promises() -> dict[int, list[PerformancePromise]]:
        """Of all lines, in one query, and only where there are any."""
        found = defaultdict(list)
        for row in PerformancePromise.objects.filter(line__quote=quote):
            found[row.line_id].append(row)
        return found

    body: dict[str, Any] = {
        "head": [
            quote.vendor_id, quote.currency, quote.tax_mode, quote.valid_until.isoformat(),
            quote.lead_time_days, quote.reference, quote.incoterm, quote.payment_terms, quote.notes,
            *([] if quote.partial_delivery is None else [quote.partial_delivery]),
        ],
        "lines": [
            {
                **{name: _plain(getattr(line, name)) for name in LINE_FIELDS},
                **{
                    name: _plain(value)
                    for name in TOLD_FIELDS
                    if (value := getattr(line, name)) not in (None, "")
                },
                "answers": line.rfq_line_id,
                "breaks": sorted(
                    [step.from_quantity, step.to_quantity, _plain(step.unit_price)]
                    for step in line.breaks.all()
                ),
                **(
                    {
                        "promises": [
                            [_plain(value) for value in row.columns().values()]
                            for row in promises()[line.pk]
                        ]
                    }
                    if line.promised
                    else {}
                ),
            }
            for line in quote.lines.order_by("position")
            .prefetch_related("breaks")
            .annotate(promised=Exists(PerformancePromise.objects.filter(line=OuterRef("pk"))))
            .iterator(chunk_size=CHUNK)
        ],
        "warranty": {
            name: _plain(value)
            for name in WARRANTY_FIELDS
            if (value := getattr(warranty, name)) not in (None, "") or name not in LATER_TERMS
        },
        "files": sorted(quote.attachments.values_list("file__sha256", flat=True)),
    }  # fmt: skip
    if payments := [row.term.to_json() for row in quote.payments.order_by("position")]:
        body["payments"] = payments
    if answers := answers_json(quote):
        body["answers"] = answers
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


def _seal(quote: Quote) -> str:
    quote = Quote.objects.select_related("warranty").get(pk=quote.pk)
    digest = compute_hash(quote)
    Quote.objects.filter(pk=quote.pk).update(content_hash=digest)
    return digest


@transaction.atomic
def withdraw_quote(*, quote_id: int, reason: str, by: User, version: int | None = None) -> Quote:
    """The vendor takes its quote back, before the deadline."""
    rfq_id = Quote.objects.values_list("rfq_id", flat=True).get(pk=quote_id)
    rfq = Rfq.objects.select_for_update().get(pk=rfq_id)
    quote = take(
        Quote.objects.select_related("rfq", "vendor"), quote_id, action="withdraw", by=by,
        version=version,
    )  # fmt: skip
    text = need_reason(reason)
    if rfq.status != RfqStatus.OPEN or rfq.is_due:
        raise InvalidTransition(msg("Quotes can no longer change after the deadline"))
    quote.reason = text
    quote.save(update_fields=["reason"])
    move(quote, QuoteStatus.WITHDRAWN, by=by, action="quote.withdrawn", reason=text)
    return quote


@transaction.atomic
def disqualify_quote(*, quote_id: int, reason: str, by: User, version: int | None = None) -> Quote:
    """Take an opened quote out of the comparison for a named failing."""
    rfq_id = Quote.objects.values_list("rfq_id", flat=True).get(pk=quote_id)
    rfq = Rfq.objects.select_for_update().get(pk=rfq_id)
    quote = take(
        Quote.objects.select_related("rfq", "vendor"), quote_id, action="disqualify", by=by,
        version=version,
    )  # fmt: skip
    refuse_conflict(rfq, acting=by)
    text = need_reason(reason)
    if rfq.status != RfqStatus.OPENED:
        raise InvalidTransition(msg("Quotes are disqualified after the opening, before the award"))
    quote.reason = text
    quote.save(update_fields=["reason"])
    move(quote, QuoteStatus.DISQUALIFIED, by=by, action="quote.disqualified", reason=text)
    return quote


@transaction.atomic
def extend_quote(
    *,
    quote_id: int,
    valid_until: date,
    by: User,
    files: Sequence[File[Any]] = (),
    version: int | None = None,
) -> Quote:
    """A longer validity as the vendor confirmed it: a new version of the quote, with the same prices and terms.

    A selected quote keeps its place, and draft orders follow to the new version.
    """
    rfq_id = Quote.objects.values_list("rfq_id", flat=True).get(pk=quote_id)
    rfq = Rfq.objects.select_for_update().get(pk=rfq_id)
    old = take(
        Quote.objects.select_related("rfq", "vendor", "warranty"), quote_id, action="replace", by=by,
        version=version,
    )  # fmt: skip
    if rfq.status not in (RfqStatus.OPEN, RfqStatus.OPENED, RfqStatus.AWARDED):
        raise InvalidTransition(
            msg("The validity of a quote is extended while bids are open or after the opening")
        )
    if valid_until <= old.valid_until:
        raise InputError(
            "valid_until",
            msg("The new last day must be after %(day)s", day=old.valid_until.isoformat()),
            value=valid_until,
            limit=old.valid_until,
        )
    status = old.status
    move(old, QuoteStatus.SUPERSEDED, by=by, action="quote.superseded")
    quote = Quote.objects.create(
        rfq=rfq,
        vendor=old.vendor,
        supersedes=old,
        revision=_next_revision(rfq, old.vendor),
        status=status,
        valid_until=valid_until,
        created_by=by,
        **{
            name: getattr(old, name)
            for name in ("reference", "currency", "tax_mode", "lead_time_days", "partial_delivery",
                         "incoterm", "payment_terms", "notes")
        },
    )  # fmt: skip
    if quote.is_expired:
        raise InputError("valid_until", expired(quote), value=valid_until)
    copies = _copy_lines(old, quote)
    WarrantyTerms.objects.create(
        quote=quote, **{name: getattr(old.warranty, name) for name in WARRANTY_FIELDS}
    )
    _add_payments(quote, [row.term for row in old.payments.all()])
    copy_answers(old, quote)
    for attachment in old.attachments.select_related("file"):
        QuoteAttachment.objects.create(quote=quote, file=attachment.file)
    for upload in files:
        QuoteAttachment.objects.create(quote=quote, file=store_upload(upload, by=by, field="files"))
    _seal(quote)
    for order in old.orders.filter(status=OrderStatus.DRAFT):
        for line in order.lines.select_related("quote_line"):
            line.quote_line = copies[line.quote_line.position]
            line.save(update_fields=["quote_line"])
        order.quote = quote
        order.save(update_fields=["quote"])
        touch(order)
    touch(rfq)
    record(
        "quote.extended", on=quote, by=by,
        valid_until=[old.valid_until.isoformat(), valid_until.isoformat()],
    )  # fmt: skip
    return quote


def _copy_lines(old: Quote, new: Quote) -> dict[int, QuoteLine]:
    lines = list(old.lines.prefetch_related("breaks", "promises"))
    copies = {
        copy.position: copy
        for copy in QuoteLine.objects.bulk_create(
            (
                QuoteLine(
                    quote=new,
                    position=line.position,
                    rfq_line_id=line.rfq_line_id,
                    **{name: getattr(line, name) for name in (*LINE_FIELDS, *TOLD_FIELDS)},
                )
                for line in lines
            ),
            batch_size=1000,
        )
    }
    PriceBreak.objects.bulk_create(
        (
            PriceBreak(
                line=copies[line.position],
                from_quantity=step.from_quantity,
                to_quantity=step.to_quantity,
                unit_price=step.unit_price,
            )
            for line in lines
            for step in line.breaks.all()
        ),
        batch_size=1000,
    )
    PerformancePromise.objects.bulk_create(
        PerformancePromise(line=copies[line.position], **row.columns())
        for line in lines
        for row in line.promises.all()
    )
    return copies
