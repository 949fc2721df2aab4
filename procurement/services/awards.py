"""The award: proposed with a written reason, decided by someone else, at most one per RFQ."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition, StaleData
from core.messages import msg
from core.models import User
from planning.states import RequestStatus
from procurement.models import Award, AwardLine, PurchasingPolicy, QuoteLine, Rfq
from procurement.selectors.award_record import record_hash, record_of
from procurement.selectors.awarded import award_rows, parts_of
from procurement.selectors.comparison import compare
from procurement.services.agreement import hold_to_approval
from procurement.services.award_documents import request_documents
from procurement.services.conflicts import require_no_conflict
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.order_sites import site_named
from procurement.services.orders import draft_orders
from procurement.services.quote_lines import exact
from procurement.services.quotes import (
    compute_hash,
    require_active,
    require_valid,
)
from procurement.states import AwardStatus, QuoteStatus, RfqStatus
from procurement.totals import price_at


@transaction.atomic
def propose_award(
    *,
    rfq_id: int,
    reason: str,
    by: User,
    quote_id: int | None = None,
    lines: Sequence[tuple[int, Decimal | str | int]] = (),
    to_none: bool = False,
    site: str = "",
    version: int | None = None,
) -> Award:
    """Propose to buy one quote whole (`quote_id`), quantities of quote lines (`lines`: id and quantity), or nothing
    (`to_none`). `site` (by its name) is where all of it is to be delivered; empty: where the requests' plans stand.

    Raises NotPermitted, InvalidTransition (another award stands), QuoteExpired or InputError (quantities that do not
    cover what was asked, a reason that is too short).
    """
    rfq = take(Rfq.objects.all(), rfq_id, action="propose_award", by=by, version=version)
    text = need_reason(reason, least=PurchasingPolicy.current().reason_length)
    require_no_conflict(rfq, acting=by, others=[rfq.owner])
    if to_none and (quote_id is not None or lines):
        raise InputError("to_none", msg("An award to none names no quote and no line"), value=True)
    where = site_named(site) if site.strip() and not to_none else None
    chosen = [] if to_none else _chosen(rfq, quote_id, lines)
    if not to_none:
        _check_cover(rfq, chosen)
    for line, _quantity in chosen:
        require_valid(line.quote)
        require_active(line.quote.vendor)
    quotes = {line.quote.pk: line.quote for line, _quantity in chosen}
    try:
        with transaction.atomic():
            award = Award.objects.create(
                rfq=rfq,
                reason=text,
                to_none=to_none,
                site=where,
                proposed_by=by,
                created_by=by,
                sheet=[row.to_json() for row in compare(rfq).rows],
                quote_hashes={str(pk): quote.content_hash for pk, quote in quotes.items()},
            )
    except IntegrityError:
        raise InvalidTransition(
            msg("%(rfq)s has an award already: it waits for a decision", rfq=rfq.number)
        ) from None
    AwardLine.objects.bulk_create(
        AwardLine(award=award, quote_line=line, quantity=quantity) for line, quantity in chosen
    )
    touch(rfq)
    told: dict[str, Any] = {} if where is None else {"site": where.name}
    record(
        "award.proposed", on=award, by=by, reason=text, rfq=rfq.number,
        **told,
        vendors=sorted({quote.vendor.name for quote in quotes.values()}),
        totals={part.vendor: str(part.totals.gross) for part in parts_of(award)},
    )  # fmt: skip
    return award


def _chosen(
    rfq: Rfq, quote_id: int | None, lines: Sequence[tuple[int, Decimal | str | int]]
) -> list[tuple[QuoteLine, Decimal]]:
    rows = (
        QuoteLine.objects.filter(quote__rfq=rfq, quote__status=QuoteStatus.SUBMITTED)
        .select_related("quote__vendor", "rfq_line")
        .prefetch_related("breaks")
    )
    if quote_id is not None:
        found = list(rows.filter(quote=quote_id, alternative_to=None))
        if not found or lines:
            raise InputError(
                "quote_id", msg("Choose one standing quote of this RFQ, or lines"), value=quote_id
            )
        return [(line, line.quantity) for line in found]
    by_id = {line.pk: line for line in rows}
    chosen: dict[int, Decimal] = {}
    for number, (pk, quantity) in enumerate(lines, 1):
        if pk not in by_id or pk in chosen:
            raise InputError(
                "lines",
                msg("Line %(line)s is not a line of a standing quote", line=number),
                value=pk,
            )
        amount = exact("quantity", quantity, digits=3, line=number)
        if amount == 0:
            continue
        line = by_id[pk]
        whole = amount == amount.to_integral_value()
        if amount > line.quantity or (line.serialised and not whole):
            raise InputError(
                "quantity",
                msg(
                    "Line %(line)s: %(value)s cannot be awarded of %(limit)s offered",
                    line=number,
                    value=str(amount),
                    limit=str(line.quantity),
                ),
                value=amount,
                limit=line.quantity,
            )
        _require_price(line, amount, number)
        chosen[pk] = amount
    if not chosen:
        raise InputError("lines", msg("Choose a quote, or lines of quotes"), value=0, limit=1)
    return [(by_id[pk], amount) for pk, amount in chosen.items()]


def _require_price(line: QuoteLine, amount: Decimal, number: int) -> None:
    """So few of the line have a price. Raises InputError naming the line as it was given."""
    steps = [step.step for step in line.breaks.all()]
    try:
        if steps:
            price_at(amount, steps)
    except InputError as error:
        raise InputError(
            "quantity",
            msg(
                "Line %(line)s: %(value)s are awarded; the vendor's prices start at %(limit)s",
                line=number,
                value=str(amount),
                limit=str(error.limit),
            ),
            value=amount,
            limit=error.limit,
        ) from error


def _check_cover(rfq: Rfq, chosen: Sequence[tuple[QuoteLine, Decimal]]) -> None:
    """Each asked line is covered, and by less than one item too many: servers of 8 for 36 cards are 5."""
    for asked in rfq.lines.all():
        parts = [
            (int(quantity * line.accelerators_per_item), line.accelerators_per_item)
            for line, quantity in chosen
            if line.rfq_line_id == asked.pk
        ]
        cards = sum(part for part, _size in parts)
        largest = max((size for _part, size in parts), default=1)
        if not asked.accelerators <= cards < asked.accelerators + largest:
            raise InputError(
                "quantity",
                msg(
                    "Line %(line)s asks for %(limit)s accelerators; the award has %(value)s",
                    line=asked.position,
                    limit=asked.accelerators,
                    value=cards,
                ),
                value=cards,
                limit=asked.accelerators,
            )


def _take_award(award_id: int, *, action: str, by: User, version: int | None) -> Award:
    """The award with its RFQ locked first, so that decisions and proposals wait for each other."""
    rfq_id = Award.objects.values_list("rfq_id", flat=True).get(pk=award_id)
    rfq = Rfq.objects.select_for_update().get(pk=rfq_id)
    award = take(
        Award.objects.select_related("rfq"), award_id, action=action, by=by, version=version
    )
    award.rfq = rfq
    return award


@transaction.atomic
def approve_award(
    *, award_id: int, by: User, over_reason: str = "", version: int | None = None
) -> Award:
    """Decide for the award: the RFQ is awarded, quotes are selected or not, a draft order is made for each vendor.

    An award to none closes the RFQ: no quote is selected, no order is made, the requests are free for another RFQ.

    Above what was approved by more than the policy's tolerance, `over_reason` says why that is right, if the policy
    allows it. Raises NotPermitted, InvalidTransition (a request is no longer approved), StaleData (a quote changed),
    QuoteExpired, InputError or AboveApproved.
    """
    award = _take_award(award_id, action="approve_award", by=by, version=version)
    rfq = award.rfq
    require_no_conflict(rfq, acting=by, others=[award.proposed_by], relied_on=[award.proposed_by])
    chosen = list(
        award.lines.select_related("quote_line__quote__vendor", "quote_line__quote__warranty")
    )
    quotes = {line.quote_line.quote_id: line.quote_line.quote for line in chosen}
    for quote in quotes.values():
        if quote.status != QuoteStatus.SUBMITTED or award.quote_hashes.get(
            str(quote.pk)
        ) != compute_hash(quote):
            raise StaleData(
                msg("The quote of %(vendor)s changed since the award was proposed",
                    vendor=quote.vendor.name)
            )  # fmt: skip
        require_valid(quote)
        require_active(quote.vendor)
    for asked in rfq.lines.select_related("request") if not award.to_none else ():
        if asked.request.status not in (RequestStatus.APPROVED, RequestStatus.SOURCING):
            raise InvalidTransition(
                msg("%(request)s is in state %(state)s: only an approved request may be ordered",
                    request=str(asked.request), state=str(asked.request.status))
            )  # fmt: skip
    hold_to_approval(award_rows(award), over_reason=over_reason, by=by)
    award.decided_by, award.decided_at = by, timezone.now()
    award.record = record_of(award, by=by, at=award.decided_at, over_reason=over_reason)
    award.record_hash = record_hash(award.record)
    award.save(update_fields=["decided_by", "decided_at", "record", "record_hash"])
    move(award, AwardStatus.APPROVED, by=by, action="award.approved", reason=award.reason)
    move(
        rfq,
        RfqStatus.UNAWARDED if award.to_none else RfqStatus.AWARDED,
        by=by,
        action="rfq.not_awarded" if award.to_none else "rfq.awarded",
        reason=award.reason,
        award=award.pk,
    )
    for quote in rfq.quotes.filter(status=QuoteStatus.SUBMITTED).select_related("rfq", "vendor"):
        selected = quote.pk in quotes
        move(
            quote,
            QuoteStatus.SELECTED if selected else QuoteStatus.NOT_SELECTED,
            by=by,
            action="quote.selected" if selected else "quote.not_selected",
        )
    draft_orders(award, by=by)
    request_documents(award, by=by)
    return award


@transaction.atomic
def reject_award(*, award_id: int, reason: str, by: User, version: int | None = None) -> Award:
    """Decide against the award, with a reason; another may be proposed."""
    award = _take_award(award_id, action="reject_award", by=by, version=version)
    require_no_conflict(award.rfq, acting=by, others=[award.proposed_by])
    text = need_reason(reason)
    award.decided_by, award.decided_at, award.decision_reason = by, timezone.now(), text
    award.save(update_fields=["decided_by", "decided_at", "decision_reason"])
    move(award, AwardStatus.REJECTED, by=by, action="award.rejected", reason=text)
    touch(award.rfq)
    return award


@transaction.atomic
def withdraw_award(*, award_id: int, reason: str, by: User, version: int | None = None) -> Award:
    """Take a proposal back before it is decided."""
    award = _take_award(award_id, action="withdraw_award", by=by, version=version)
    text = need_reason(reason)
    move(award, AwardStatus.WITHDRAWN, by=by, action="award.withdrawn", reason=text)
    touch(award.rfq)
    return award
