"""Purchase orders: drafted by an award, issued against the budget, amended as revisions, closed when all is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition, StaleData
from core.messages import msg
from core.models import User
from core.money import Money
from core.organisation import local_day, quarter_at, today
from core.sequences import next_number
from planning.models import CapacityRequest, LedgerEntry
from planning.models.budgets import Bucket
from planning.services.requests import start_sourcing
from planning.services.spending import commit, release_commitment
from planning.states import RequestStatus
from procurement.evidence.policy import default_policy
from procurement.milestones import Term, check_terms, numbered
from procurement.models import (
    Award,
    Milestone,
    OrderLine,
    OrderRevision,
    PurchaseOrder,
    PurchasingPolicy,
)
from procurement.models.orders import terms_hash
from procurement.precedence import Precedence
from procurement.selectors.awarded import amendment_rows, awarded_lines, order_rows, request_shares
from procurement.selectors.milestones import milestone_states, unfinished
from procurement.selectors.precedence import order_differences
from procurement.selectors.progress import invoice_ids, invoice_source, line_progress, open_invoices
from procurement.services.agreement import hold_to_approval
from procurement.services.conflicts import refuse_conflict
from procurement.services.contract_checklists import pin_checklists
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.order_documents import request_document
from procurement.services.order_sites import planned_site
from procurement.services.quote_lines import exact
from procurement.services.quotes import require_valid
from procurement.states import OrderStatus, RevisionStatus, VendorStatus
from procurement.totals import DocumentTotals, price_at


def rows() -> Any:
    return PurchaseOrder.objects.select_related("vendor", "quote__vendor", "award")


def draft_orders(award: Award, *, by: User) -> list[PurchaseOrder]:
    """One draft order per awarded quote, on exactly the quote's terms."""
    orders: dict[int, PurchaseOrder] = {}
    for quote, lines in awarded_lines(award):
        order = orders[quote.pk] = PurchaseOrder.objects.create(
            award=award,
            quote=quote,
            vendor=quote.vendor,
            currency=quote.currency,
            tax_mode=quote.tax_mode,
            precedence=Precedence.CLAUSES.value,
            created_by=by,
        )
        for line in lines:
            line.order = order
            line.save()
        set_milestones(order, [row.term for row in quote.payments.all()])
    for order in orders.values():
        order.site = award.site or planned_site(order.lines.select_related("request"))
        order.save(update_fields=["site"])
        _store_totals(order, order.totals())
        record("order.drafted", on=order, by=by, vendor=order.vendor.name, total=str(order.gross))
    return list(orders.values())


def set_milestones(order: PurchaseOrder, terms: Iterable[Term]) -> None:
    """The order is paid by these terms from now on; by accepted quantity where there are none.

    Milestones that an invoice claims (a void one: terms stand under any other) are retired, the others are gone.
    """
    before = order.milestones.standing()
    before.filter(parts=None).delete()
    before.update(retired_at=timezone.now())
    Milestone.objects.bulk_create(Milestone(order=order, **columns) for columns in numbered(terms))


def terms_of(order: PurchaseOrder) -> list[dict[str, Any]]:
    """The order's payment terms as JSON values."""
    return [row.term.to_json() for row in order.milestones.standing()]


def _store_totals(order: PurchaseOrder, totals: DocumentTotals) -> None:
    order.net_amount = totals.net.amount
    order.tax_amount = totals.tax.amount
    order.gross_amount = totals.gross.amount
    order.save(update_fields=["net_amount", "tax_amount", "gross_amount"])


def source_of(order: PurchaseOrder) -> str:
    """Under which name the order stands in the budget's ledger."""
    return f"order:{order.number}"


@transaction.atomic
def issue_order(*, order_id: int, by: User, version: int | None = None) -> PurchaseOrder:
    """Make the order binding: a number without gaps, and its amount committed against each request's budget.

    Raises NotPermitted, InvalidTransition, StaleData (terms differ from the quote), QuoteExpired, or what the budget
    says (OverBudget, AboveApproved); then nothing is changed and no number is used.
    """
    order: PurchaseOrder = take(rows(), order_id, action="issue", by=by, version=version)
    if order.vendor.status != VendorStatus.ACTIVE:
        raise InvalidTransition(msg("%(vendor)s is blocked", vendor=order.vendor.name))
    require_valid(order.quote)
    lines = list(order.lines.select_related("quote_line").prefetch_related("quote_line__breaks"))
    _require_quoted_terms(order, lines)
    payments = terms_of(order)
    totals = order.totals(lines)
    _store_totals(order, totals)
    fiscal_year = quarter_at().year
    order.number = f"PO-{fiscal_year}-{next_number(f'order:{fiscal_year}'):04d}"
    order.issued_by, order.issued_at = by, timezone.now()
    order.expected_on = order.quote.comes_on(today())
    order.evidence_policy = default_policy().to_json()
    order.burn_in_hours = PurchasingPolicy.current().burn_in_hours
    pin_checklists(order, by=by)
    order.save(
        update_fields=[
            "number", "issued_by", "issued_at", "expected_on", "evidence_policy", "burn_in_hours",
        ]
    )  # fmt: skip
    for request_id, amount in request_shares(lines, totals).items():
        if amount.amount:
            # Approved anew since the RFQ was published: sourcing goes on from here.
            if CapacityRequest.objects.get(pk=request_id).status == RequestStatus.APPROVED:
                start_sourcing(request_id=request_id, by=by)
            commit(request_id=request_id, amount=amount, source=source_of(order), by=by)
    snapshot = [line.snapshot() for line in lines]
    OrderRevision.objects.create(
        order=order,
        number=0,
        status=RevisionStatus.BINDING,
        lines=snapshot,
        payments=payments,
        gross_amount=order.gross_amount,
        content_hash=terms_hash(snapshot, order.currency, order.tax_mode, payments),
        proposed_by=by,
        decided_at=timezone.now(),
    )
    move(
        order, OrderStatus.ISSUED, by=by, action="order.issued",
        number=order.number, total=str(order.gross), quote_hash=order.quote.content_hash,
        precedence=order.precedence, differences=[row.to_json() for row in order_differences(order)],
    )  # fmt: skip
    request_document(order, by=by)
    return order


@transaction.atomic
def agree_over(
    *, order_id: int, over_reason: str, by: User, version: int | None = None
) -> PurchaseOrder:
    """An approver agrees that a draft order goes above what was approved, with a reason (prices moved since the award).

    Raises NotPermitted, InvalidTransition (it is within what was approved), InputError or AboveApproved.
    """
    order: PurchaseOrder = take(rows(), order_id, action="agree_over", by=by, version=version)
    award = order.award
    refuse_conflict(
        award.rfq,
        acting=by,
        relied_on=[person for person in (award.proposed_by, award.decided_by) if person],
    )
    found = order_rows(order)
    if not any(row.is_beyond for row in found):
        raise InvalidTransition(msg("The order is within what was approved"))
    hold_to_approval(found, over_reason=over_reason, by=by)
    touch(order)
    return order


def _require_quoted_terms(order: PurchaseOrder, lines: Iterable[OrderLine]) -> None:
    """Price, tax and description of each line are the quote's, to the last digit."""
    for line in lines:
        offered = line.quote_line
        steps = [step.step for step in offered.breaks.all()]
        price = price_at(line.quantity, steps) if steps else offered.unit_price
        same = (
            offered.quote_id == order.quote_id
            and line.unit_price == price
            and line.tax_rate == offered.tax_rate
            and line.description == offered.description
            and line.quantity <= offered.quantity
        )
        if not same:
            raise StaleData(
                msg("Line %(line)s of the order differs from the quote", line=line.position),
                changes={"unit_price": (str(line.unit_price), str(price))},
            )
    if terms_of(order) != [row.term.to_json() for row in order.quote.payments.all()]:
        raise StaleData(msg("The payment terms of the order differ from the quote"))


@transaction.atomic
def acknowledge_order(
    *, order_id: int, promised_on: date, by: User, version: int | None = None
) -> PurchaseOrder:
    """The vendor confirmed, and promised a day."""
    order: PurchaseOrder = take(rows(), order_id, action="acknowledge", by=by, version=version)
    if order.issued_at is not None and promised_on < (issued := local_day(order.issued_at)):
        raise InputError(
            "promised_on",
            msg("The promised day, %(value)s, is before the order was issued, on %(limit)s",
                value=promised_on.isoformat(), limit=issued.isoformat()),
            value=promised_on, limit=issued,
        )  # fmt: skip
    order.promised_on = promised_on
    order.save(update_fields=["promised_on"])
    move(
        order, OrderStatus.ACKNOWLEDGED, by=by, action="order.acknowledged",
        promised_on=promised_on.isoformat(),
    )  # fmt: skip
    return order


@transaction.atomic
def propose_amendment(
    *,
    order_id: int,
    reason: str,
    by: User,
    changes: Mapping[int, Mapping[str, Any]] | None = None,
    payments: Sequence[Mapping[str, Any]] | None = None,
    version: int | None = None,
) -> OrderRevision:
    """Propose other quantities or unit prices for lines, by position: {1: {"quantity": "6", "unit_price": "…"}}, or
    other `payments` (see `procurement.milestones`; None: as they are), which stand once the first invoice came.

    The order as it is stays binding until a second person approves. Not below what was received or invoiced.
    """
    order: PurchaseOrder = take(rows(), order_id, action="amend", by=by, version=version)
    text = need_reason(reason)
    lines = list(order.lines.all())
    progress = line_progress(order)
    changes = changes or {}
    unknown = set(changes) - {line.position for line in lines}
    if unknown or (not changes and payments is None):
        raise InputError(
            "changes", msg("Name lines of the order and what changes"), value=sorted(unknown)
        )
    for line in lines:
        given = changes.get(line.position, {})
        if "quantity" in given:
            quantity = exact("quantity", given["quantity"], digits=3, line=line.position)
            least = max(progress[line.pk].received, progress[line.pk].invoiced)
            if quantity < least or quantity == 0 or (line.serialised and quantity % 1):
                raise InputError(
                    "quantity",
                    msg(
                        "Line %(line)s: %(value)s; received or invoiced are %(limit)s",
                        line=line.position,
                        value=str(quantity),
                        limit=str(least),
                    ),
                    value=quantity,
                    limit=least,
                )
            line.quantity = quantity
        if "unit_price" in given:
            price = exact("unit_price", given["unit_price"], digits=6, line=line.position)
            if progress[line.pk].invoiced and price < line.unit_price:
                raise InputError(
                    "unit_price",
                    msg("Line %(line)s was invoiced: its price cannot fall", line=line.position),
                    value=price,
                    limit=line.unit_price,
                )
            line.unit_price = price
    snapshot = [line.snapshot() for line in lines]
    terms = terms_of(order)
    if payments is not None:
        terms = [term.to_json() for term in check_terms(payments)]
    _check_payments(order, terms, order.totals(lines))
    content_hash = terms_hash(snapshot, order.currency, order.tax_mode, terms)
    if order.revisions.filter(status=RevisionStatus.BINDING, content_hash=content_hash).exists():
        raise InputError("changes", msg("Nothing would change"), value="")
    last = order.revisions.order_by("-number").first()
    try:
        with transaction.atomic():
            revision = OrderRevision.objects.create(
                order=order,
                number=(last.number if last else 0) + 1,
                status=RevisionStatus.PROPOSED,
                reason=text,
                lines=snapshot,
                payments=terms,
                gross_amount=order.totals(lines).gross.amount,
                content_hash=content_hash,
                proposed_by=by,
            )
    except IntegrityError:
        raise InvalidTransition(msg("Another amendment waits for a decision")) from None
    touch(order)
    record(
        "order.amendment_proposed", on=order, by=by, reason=text, amendment=revision.number,
        total=[str(order.gross), str(Money(revision.gross_amount, order.currency))],
    )  # fmt: skip
    return revision


def _check_payments(
    order: PurchaseOrder, terms: list[dict[str, Any]], totals: DocumentTotals
) -> None:
    """Payment terms stand once an invoice came, and no milestone falls below what was invoiced of it."""
    if terms != terms_of(order) and open_invoices(order).exists():
        raise InputError(
            "payments", msg("Something was invoiced: the payment terms stand"), value=len(terms)
        )
    for state in milestone_states(order, totals):
        if state.billed > state.amount:
            raise InputError(
                "changes",
                msg(
                    "Milestone %(line)s would come to %(value)s; %(limit)s of it are invoiced",
                    line=state.milestone.position,
                    value=str(state.amount),
                    limit=str(state.billed),
                ),
                value=state.amount.amount,
                limit=state.billed.amount,
            )


def _take_revision(revision_id: int, *, action: str, by: User) -> OrderRevision:
    order_id = OrderRevision.objects.values_list("order_id", flat=True).get(pk=revision_id)
    order = rows().select_for_update(of=("self",)).get(pk=order_id)
    revision = take(
        OrderRevision.objects.select_related("order"), revision_id, action=action, by=by
    )
    revision.order = order
    return revision


@transaction.atomic
def approve_amendment(*, revision_id: int, by: User, over_reason: str = "") -> PurchaseOrder:
    """Make an amendment binding; the budget's commitment follows the difference of the totals.

    Above what was approved by more than the tolerance, `over_reason` says why (see `hold_to_approval`).
    """
    revision = _take_revision(revision_id, action="approve_amendment", by=by)
    order = revision.order
    refuse_conflict(order.award.rfq, acting=by, relied_on=[revision.proposed_by])
    hold_to_approval(amendment_rows(revision), over_reason=over_reason, by=by)
    lines = list(order.lines.all())
    before = request_shares(lines, order.totals(lines))
    proposed = {row["position"]: row for row in revision.lines}
    progress = line_progress(order)
    for line in lines:
        row = proposed[line.position]
        quantity = Decimal(row["quantity"])
        least = max(progress[line.pk].received, progress[line.pk].invoiced)
        if quantity < least:
            raise StaleData(
                msg("Line %(line)s: %(limit)s were received or invoiced since",
                    line=line.position, limit=str(least))
            )  # fmt: skip
        line.quantity = quantity
        line.unit_price = Decimal(row["unit_price"])
        line.save(update_fields=["quantity", "unit_price"])
    totals = order.totals(lines)
    if revision.payments != terms_of(order) and open_invoices(order).exists():
        raise StaleData(msg("Something was invoiced: the payment terms stand"))
    if revision.payments != terms_of(order):
        set_milestones(order, check_terms(revision.payments))
    _check_payments(order, revision.payments, totals)
    after = request_shares(lines, totals)
    for request_id in sorted(set(before) | set(after)):
        zero = Money(Decimal(0), order.currency)
        delta = after.get(request_id, zero) - before.get(request_id, zero)
        if delta.amount:
            commit(
                request_id=request_id, amount=delta, source=source_of(order),
                revision=revision.number, by=None,
            )  # fmt: skip
    binding = order.revisions.get(status=RevisionStatus.BINDING)
    OrderRevision.objects.filter(pk=binding.pk).update(status=RevisionStatus.SUPERSEDED)
    revision.decided_by, revision.decided_at = by, timezone.now()
    revision.save(update_fields=["decided_by", "decided_at"])
    move(
        revision, RevisionStatus.BINDING, by=by, action="order.amended", reason=revision.reason,
        amendment=revision.number,
    )  # fmt: skip
    _store_totals(order, totals)
    order.revision = revision.number
    order.save(update_fields=["revision"])
    touch(order)
    request_document(order, by=by)
    return order


@transaction.atomic
def reject_amendment(*, revision_id: int, reason: str, by: User) -> PurchaseOrder:
    """Decide against an amendment; the order stays as it is."""
    revision = _take_revision(revision_id, action="reject_amendment", by=by)
    refuse_conflict(revision.order.award.rfq, acting=by)
    text = need_reason(reason)
    revision.decided_by, revision.decided_at = by, timezone.now()
    revision.decision_reason = text
    revision.save(update_fields=["decided_by", "decided_at", "decision_reason"])
    move(revision, RevisionStatus.REJECTED, by=by, action="order.amendment_rejected", reason=text)
    touch(revision.order)
    return revision.order


@transaction.atomic
def cancel_order(
    *, order_id: int, reason: str, by: User, version: int | None = None
) -> PurchaseOrder:
    """Cancel an order of which nothing was received or invoiced; what it committed is released."""
    order: PurchaseOrder = take(rows(), order_id, action="cancel", by=by, version=version)
    text = need_reason(reason)
    if order.deliveries.filter(status="posted").exists() or open_invoices(order).exists():
        raise InvalidTransition(msg("Goods were received or invoiced: the order stands"))
    if order.number is not None:
        _release_standing(order, reason=text)
    move(order, OrderStatus.CANCELLED, by=by, action="order.cancelled", reason=text)
    return order


@transaction.atomic
def close_order(
    *, order_id: int, by: User, reason: str = "", version: int | None = None
) -> PurchaseOrder:
    """Close an order whose lines are all received, accepted and paid; with a reason, close what is missing short.

    What was committed and will not be spent is released.
    """
    order: PurchaseOrder = take(rows(), order_id, action="close", by=by, version=version)
    if open_invoices(order).exclude(status="paid").exists():
        raise InvalidTransition(msg("An invoice is not paid yet"))
    short = unfinished(order)
    if short:
        reason = need_reason(reason)
        order.lines.filter(position__in=short).update(short_closed=True)
    _release_standing(order, reason=reason or "closed")
    move(
        order, OrderStatus.CLOSED, by=by, action="order.closed", reason=reason,
        short=short,
    )  # fmt: skip
    return order


def _release_standing(order: PurchaseOrder, *, reason: str) -> None:
    """Release what still stands in the ledger for the order, in the budget's own currency: exact at any rate."""
    sources = [source_of(order), *(invoice_source(pk) for pk in invoice_ids(order))]
    standing = (
        LedgerEntry.objects.filter(bucket=Bucket.COMMITTED, source__in=sources)
        .order_by()
        .values_list("request_id", "budget__currency")
        .annotate(total=Sum("amount"))
    )
    for request_id, currency, total in standing:
        if request_id is not None and total > 0:
            release_commitment(
                request_id=request_id, amount=Money(total, currency), source=source_of(order),
                revision=order.revision, by=None, reason=reason,
            )  # fmt: skip
