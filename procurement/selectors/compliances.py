"""How each quote of a comparison stands to what its RFQ asks for."""

from __future__ import annotations

from core.organisation import today
from procurement.compliance import Asked, Check, Offered, compliance
from procurement.models import PurchasingPolicy
from procurement.selectors.comparison import Comparison
from procurement.warranty_rules import StartTrigger


def compliances(comparison: Comparison) -> dict[int, tuple[Check, ...]]:
    """By quote; one query more than the comparison, whatever the number of quotes."""
    rfq, on = comparison.rfq, today()
    hours = PurchasingPolicy.current().burn_in_hours
    found = {}
    for row in comparison.rows:
        quote, warranty = row.quote, row.quote.warranty
        asked = Asked(
            accelerators=sum(part.asked for part in row.coverage),
            warranty_months=rfq.warranty_months,
            warranty_start=StartTrigger(rfq.warranty_start),
            burn_in_hours=hours,
            deliver_by=rfq.deliver_by,
            has_terms=bool(rfq.terms.strip()),
        )
        offered = Offered(
            accelerators=sum(min(part.offered, part.asked) for part in row.coverage),
            warranty_months=warranty.months,
            warranty_start=StartTrigger(warranty.start_trigger),
            burn_in_permitted=warranty.burn_in_permitted,
            lead_time_days=quote.lead_time_days,
            terms_agreed=None,  # a quote answers terms in words by words: read its notes, or ask
        )
        found[quote.pk] = compliance(asked, offered, today=on)
    return found
