"""Conflict-of-interest statements: made by each person on an RFQ, and asked for before an award when policy says so.

A declared conflict holds whatever the policy says, on every decision about the RFQ and the orders that came of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.db import transaction

from core.audit import record
from core.errors import DomainError, InputError, NotPermitted
from core.messages import msg
from core.models import User
from procurement.models import ConflictStatement, PurchasingPolicy, Rfq
from procurement.services.moves import take, touch


class StatementMissing(DomainError):
    """The policy asks for a statement that was not made."""

    code = "statement_missing"


@transaction.atomic
def state_conflict(
    *,
    rfq_id: int,
    by: User,
    has_conflict: bool = False,
    text: str = "",
    vendor_id: int | None = None,
    version: int | None = None,
) -> Rfq:
    """Say whether one has an interest in a vendor of the RFQ. A conflict adds to those stated before;
    that there is none takes all of them back.

    With `vendor_id` it holds on other RFQs too in which this vendor quotes, until one states otherwise there. Raises
    NotPermitted, InvalidTransition or InputError (a conflict that is not named, a vendor that was not invited).
    """
    rfq = take(Rfq.objects.all(), rfq_id, action="state_conflict", by=by, version=version)
    words = text.strip()
    if has_conflict and not words:
        raise InputError("text", msg("Say what the conflict of interest is"))
    if len(words) > 4000:
        raise InputError(
            "text", msg("At most %(limit)s characters", limit=4000), value=len(words), limit=4000
        )
    vendor = None
    if vendor_id is not None:
        invited = rfq.invitations.select_related("vendor").filter(vendor=vendor_id).first()
        if invited is None or not has_conflict:
            raise InputError(
                "vendor_id",
                msg("This vendor was not invited")
                if invited is None
                else msg("Without a conflict of interest, name no vendor"),
                value=vendor_id,
            )
        vendor = invited.vendor
    ConflictStatement.objects.create(
        rfq=rfq, person=by, has_conflict=has_conflict, text=words, vendor=vendor
    )
    touch(rfq)
    record(
        "rfq.conflict_stated", on=rfq, by=by, has_conflict=has_conflict, text=words,
        vendor=vendor.name if vendor else None,
    )  # fmt: skip
    return rfq


def newest(rfq: Rfq) -> dict[int, ConflictStatement]:
    """Person id → the newest statement: while it declares a conflict, one stands here."""
    return {row.person_id: row for row in rfq.statements.select_related("person").order_by("pk")}


def in_conflict(rfq: Rfq, people: Iterable[User]) -> set[int]:
    """Ids of those of `people` who declared a conflict that holds on `rfq`: here, or elsewhere with a vendor that
    quotes here, unless they stated otherwise here."""
    ids = {person.pk for person in people}
    here = newest(rfq)
    found = {pk for pk in ids if pk in here and here[pk].has_conflict}
    quoting: set[int | None] = set(rfq.quotes.values_list("vendor", flat=True))
    vendors: dict[tuple[int, int], set[int | None]] = defaultdict(set)
    rows = ConflictStatement.objects.filter(
        person__in=ids - set(here), rfq__invitations__vendor__in=quoting
    )
    for row in rows.order_by("pk"):
        declared = vendors[row.person_id, row.rfq_id]
        if row.has_conflict:
            declared.add(row.vendor_id)
        else:
            declared.clear()
    return found | {person for (person, _rfq), declared in vendors.items() if declared & quoting}


def refuse_conflict(rfq: Rfq, *, acting: User, relied_on: Iterable[User] = ()) -> None:
    """Neither `acting` nor any of `relied_on`, whose earlier part this step builds upon, declared a conflict.

    Raises NotPermitted.
    """
    relied_on = list(relied_on)
    bound = in_conflict(rfq, [acting, *relied_on])
    if acting.pk in bound:
        raise NotPermitted(
            msg("You declared a conflict of interest: another person decides here"), on=rfq
        )
    for person in relied_on:
        if person.pk in bound:
            raise NotPermitted(
                msg("%(name)s, on whose part this rests, declared a conflict of interest: it is done anew by another "
                    "person", name=str(person)),
                on=rfq,
            )  # fmt: skip


def require_no_conflict(
    rfq: Rfq, *, acting: User, others: Iterable[User] = (), relied_on: Iterable[User] = ()
) -> None:
    """`refuse_conflict`, and where the policy asks for it, `acting` and `others` who evaluated made their statement.

    Raises NotPermitted or StatementMissing.
    """
    refuse_conflict(rfq, acting=acting, relied_on=relied_on)
    said = newest(rfq)
    if not PurchasingPolicy.current().conflict_statements:
        return
    for person in (acting, *others):
        if person.pk not in said:
            raise StatementMissing(
                msg("%(name)s has not made the conflict-of-interest statement", name=str(person))
            )
