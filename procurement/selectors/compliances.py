"""How each quote of a comparison stands to what its RFQ asks for."""

from __future__ import annotations

from collections.abc import Iterable

from procurement.compliance import Asked, Check, Offered, compliance
from procurement.models import PurchasingPolicy, RfqRequirement
from procurement.requirements import RequirementKind
from procurement.selectors.comparison import Comparison
from procurement.warranty_rules import StartTrigger


def compliances(comparison: Comparison) -> dict[int, tuple[Check, ...]]:
    """By quote; two queries more than the comparison, whatever the number of quotes."""
    rfq, on = comparison.rfq, comparison.rfq.judged_on()
    hours = PurchasingPolicy.current().burn_in_hours
    dated = list(rfq.requirements.filter(kind=RequirementKind.DELIVERY))
    found = {}
    for row in comparison.rows:
        quote, warranty = row.quote, row.quote.warranty
        asked_lines = {part.position for part in row.coverage}
        asked = Asked(
            accelerators=sum(part.asked for part in row.coverage),
            warranty_months=rfq.warranty_months,
            warranty_start=StartTrigger(rfq.warranty_start),
            burn_in_hours=hours,
            deliver_by=None if _cover(dated, asked_lines) else rfq.deliver_by,
            has_terms=bool(rfq.terms.strip()),
        )
        offered = Offered(
            accelerators=sum(min(part.offered, part.asked) for part in row.coverage),
            warranty_months=warranty.months,
            warranty_start=StartTrigger(warranty.start_trigger),
            burn_in_permitted=warranty.burn_in_permitted,
            comes_on=quote.comes_on(on),
        )
        found[quote.pk] = compliance(asked, offered, ordered=on)
    return found


def _cover(dated: Iterable[RfqRequirement], positions: set[int]) -> bool:
    """Whether criteria of delivery, judged among the criteria, say a day for each of these lines."""
    return any(not row.lines for row in dated) or positions <= {
        line for row in dated for line in row.lines
    }
