"""Conflict-of-interest statements: made by each person on an RFQ, and asked for before an award when policy says so."""

from __future__ import annotations

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
    *, rfq_id: int, by: User, has_conflict: bool = False, text: str = "", version: int | None = None
) -> Rfq:
    """Say whether one has an interest in a vendor of the RFQ. Said again, the newer statement counts.

    Raises NotPermitted, InvalidTransition or InputError (a conflict that is not named).
    """
    rfq = take(Rfq.objects.all(), rfq_id, action="state_conflict", by=by, version=version)
    words = text.strip()
    if has_conflict and not words:
        raise InputError("text", msg("Say what the conflict of interest is"))
    if len(words) > 4000:
        raise InputError(
            "text", msg("At most %(limit)s characters", limit=4000), value=len(words), limit=4000
        )
    ConflictStatement.objects.create(rfq=rfq, person=by, has_conflict=has_conflict, text=words)
    touch(rfq)
    record("rfq.conflict_stated", on=rfq, by=by, has_conflict=has_conflict, text=words)
    return rfq


def newest(rfq: Rfq) -> dict[int, ConflictStatement]:
    """Person id → the statement that counts."""
    return {row.person_id: row for row in rfq.statements.select_related("person").order_by("pk")}


def require_no_conflict(rfq: Rfq, *, acting: User, others: Iterable[User] = ()) -> None:
    """`acting` said that there is no conflict, where the policy asks for it; so did `others` who evaluated.

    Whoever declared a conflict takes no part, whatever the policy says. Raises NotPermitted or StatementMissing.
    """
    said = newest(rfq)
    own = said.get(acting.pk)
    if own is not None and own.has_conflict:
        raise NotPermitted(
            msg("You declared a conflict of interest: another person decides here"), on=rfq
        )
    if not PurchasingPolicy.current().conflict_statements:
        return
    for person in (acting, *others):
        if person.pk not in said:
            raise StatementMissing(
                msg("%(name)s has not made the conflict-of-interest statement", name=str(person))
            )
