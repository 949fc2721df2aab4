"""Parts sent in place of those ordered: asked for, consented to by a second person, and only then received."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import User
from procurement.models import OrderLine, PurchaseOrder, Substitution
from procurement.serials import fold
from procurement.services.conflicts import refuse_conflict
from procurement.services.moves import move, need_reason, take, touch
from procurement.states import SubstitutionStatus


@transaction.atomic
def propose_substitution(
    *,
    order_id: int,
    position: int,
    part_number: str,
    description: str,
    reason: str,
    by: User,
    version: int | None = None,
) -> Substitution:
    """Note that the vendor wants to send `part_number` for a line; it waits for consent.

    Raises NotPermitted, InvalidTransition (asked for already) or InputError.
    """
    order = take(
        PurchaseOrder.objects.all(), order_id, action="propose_substitution", by=by, version=version
    )
    line = order.lines.filter(position=position).first()
    if line is None:
        raise InputError(
            "position",
            msg("Line %(line)s is not a line of the order", line=str(position)), value=position,
        )  # fmt: skip
    part, words = " ".join(part_number.split()), " ".join(description.split())
    for field, text, most in (("part_number", part, 80), ("description", words, 300)):
        if not 1 <= len(text) <= most:
            raise InputError(
                field, msg("Between 1 and %(limit)s characters", limit=most), value=len(text), limit=most
            )  # fmt: skip
    if fold(part) == fold(line.part_number):
        raise InputError("part_number", msg("This is the part that was ordered"), value=part)
    try:
        with transaction.atomic():
            row = Substitution.objects.create(
                order_line=line,
                part_number=part,
                folded_part=fold(part),
                description=words,
                reason=need_reason(reason),
                created_by=by,
            )
    except IntegrityError:
        raise InvalidTransition(
            msg("%(part)s was asked for already on line %(line)s", part=part, line=position)
        ) from None
    touch(order)
    record("substitution.proposed", on=row, by=by, reason=row.reason, part=part, description=words)
    return row


def _take(substitution_id: int, *, action: str, by: User, version: int | None) -> Substitution:
    order_id = Substitution.objects.values_list("order_line__order", flat=True).get(
        pk=substitution_id
    )
    order = PurchaseOrder.objects.select_for_update().get(pk=order_id)
    row: Substitution = take(
        Substitution.objects.select_related("order_line"), substitution_id, action=action, by=by,
        version=version,
    )  # fmt: skip
    row.order_line.order = order
    return row


@transaction.atomic
def consent_to_substitution(
    *, substitution_id: int, by: User, version: int | None = None
) -> Substitution:
    """Agree that the other part is received for the line, at the price ordered."""
    row = _take(substitution_id, action="consent", by=by, version=version)
    refuse_conflict(row.order_line.order.award.rfq, acting=by)
    row.decided_by = by
    row.save(update_fields=["decided_by"])
    move(row, SubstitutionStatus.CONSENTED, by=by, action="substitution.consented")
    touch(row.order_line.order)
    return row


@transaction.atomic
def refuse_substitution(
    *, substitution_id: int, reason: str, by: User, version: int | None = None
) -> Substitution:
    """Say no: the part that was ordered is owed."""
    row = _take(substitution_id, action="refuse", by=by, version=version)
    refuse_conflict(row.order_line.order.award.rfq, acting=by)
    row.decided_by, row.decision_reason = by, need_reason(reason)
    row.save(update_fields=["decided_by", "decision_reason"])
    move(row, SubstitutionStatus.REFUSED, by=by, action="substitution.refused", reason=reason)
    touch(row.order_line.order)
    return row


def received_as(line: OrderLine, part_number: str) -> Substitution | None:
    """The consented substitution under which `part_number` is received; None for the part that was ordered.

    No part number said is the part that was ordered, unless this has a number and consent to another one was given:
    then either may have come, and the receiver says which. Raises InputError in that case, when it is another part and
    nobody consented, and when the order names no part to compare with.
    """
    part = fold(part_number)
    consented = line.substitutions.filter(status=SubstitutionStatus.CONSENTED)
    if not part:
        others = [row.part_number for row in consented.order_by("part_number")]
        if others and fold(line.part_number):
            raise InputError(
                "part_number",
                msg("Line %(line)s: say which part came: %(ordered)s as ordered, or with consent %(others)s",
                    line=line.position, ordered=line.part_number, others=", ".join(others)),
                value=part_number, limit=", ".join(others),
            )  # fmt: skip
        return None
    if part == fold(line.part_number):
        return None
    row = consented.filter(folded_part=part).first()
    if row is None and not fold(line.part_number):
        raise InputError(
            "part_number",
            msg("Line %(line)s: the order names no part number to compare %(value)s with: leave it out if the goods "
                "are as ordered, or have the other part consented to", line=line.position,
                value=" ".join(part_number.split())),
            value=part_number, limit="",
        )  # fmt: skip
    if row is None:
        raise InputError(
            "part_number",
            msg("Line %(line)s: %(value)s came, %(limit)s was ordered, and nobody consented to another part",
                line=line.position, value=" ".join(part_number.split()), limit=line.part_number),
            value=part_number, limit=line.part_number,
        )  # fmt: skip
    return row
