"""What may be negotiated with each vendor, with amounts: from its own quote, the best of the others, and the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from core.messages import Message, msg
from core.money import Money, money_json
from planning.economics import defaults
from planning.economics.ownership import evaluate
from planning.economics.ownership_case import Housing, OwnershipCase
from planning.economics.types import ServerPlatform
from procurement.milestones import PaymentEvent
from procurement.models import Rfq
from procurement.models.negotiation import Concession, Subject
from procurement.models.quotes import LineKind
from procurement.selectors.comparison import Comparison, Row

BUNDLED = (LineKind.SERVER, LineKind.NETWORK, LineKind.STORAGE, LineKind.SOFTWARE, LineKind.OTHER)
DEPLOYED = (LineKind.SERVICE, LineKind.FREIGHT)
KINDS = {BUNDLED: Subject.BUNDLE, DEPLOYED: Subject.DEPLOYMENT}
BEFORE_ACCEPTANCE = (PaymentEvent.ORDER, PaymentEvent.DELIVERY)


@dataclass(frozen=True, slots=True)
class Lever:
    """One thing to ask for. `amount` in the organisation's currency; None where no figure stands behind it."""

    subject: str
    text: Message
    amount: Money | None

    @property
    def label(self) -> Any:
        return Subject(self.subject).label

    def to_json(self, said: Any) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "text": self.text.render(said),
            "amount": money_json(self.amount),
        }


def levers(comparison: Comparison) -> dict[int, list[Lever]]:
    """Quote id → levers, largest amount first. No query: works on what the comparison has read, payments apart."""
    complete = [row for row in comparison.rows if row.is_complete]
    sums = {
        row.quote.pk: {kinds: _sum_of(row, kinds) for kinds in KINDS} for row in comparison.rows
    }
    found = {}
    for row in comparison.rows:
        others = [other for other in complete if other is not row]
        ideas = [
            _price(row, others),
            _warranty(row, comparison.rfq.warranty_months),
            *(
                _lines(
                    sums[row.quote.pk][kinds],
                    [sums[other.quote.pk][kinds] for other in others],
                    subject,
                )
                for kinds, subject in KINDS.items()
            ),
            _sample(row),
        ]
        kept = [idea for idea in ideas if idea is not None]
        kept.sort(key=lambda lever: -(lever.amount.amount if lever.amount else Decimal(-1)))
        found[row.quote.pk] = kept
    return found


def _price(row: Row, others: list[Row]) -> Lever | None:
    prices = [other.per_accelerator for other in others if other.per_accelerator is not None]
    own = row.per_accelerator
    if own is None or not prices or min(prices) >= own:
        return None
    gap = (own - min(prices)) * row.accelerators
    return Lever(
        Subject.PRICE,
        msg("Another complete quote is lower by this for the same number of cards"),
        gap.rounded(),
    )


def _warranty(row: Row, asked: int) -> Lever | None:
    """What the missing years are worth: the engine's cost of owning with the one warranty less that with the other."""
    if row.months >= asked:
        return None
    worth, known = warranty_worth(row.net, row.months, asked), longest_life()
    if worth is None:
        text = (
            msg("From %(now)s to %(asked)s months: what it is worth is not known without a price in the organisation's "
                "currency", now=row.months, asked=asked)
            if row.net is None
            else msg("From %(now)s to %(asked)s months: what cover after month %(last)s is worth is not known",
                     now=row.months, asked=asked, last=known)
        )  # fmt: skip
    elif asked > known:
        text = msg(
            "From %(now)s to %(asked)s months: worth this by the cost of owning, present value, counted to month "
            "%(last)s; beyond it nothing is known", now=row.months, asked=asked, last=known,
        )  # fmt: skip
    else:
        text = msg(
            "From %(now)s to %(asked)s months: worth this by the cost of owning, present value",
            now=row.months,
            asked=asked,
        )
    return Lever(Subject.WARRANTY, text, worth)


def longest_life() -> int:
    """Months of service up to which the engine knows what cards are worth."""
    return 12 * len(defaults.curve("residual.h100"))


def warranty_worth(net: Money | None, months: int, asked: int) -> Money | None:
    """Present value [money] of `asked` instead of `months` of warranty on goods of `net`, months of a year in part.

    0 where no more is asked; counted to `longest_life`. None (not known) without a price, or where all that is asked
    more lies beyond.
    """
    known = longest_life()
    if net is None or (asked > months >= known):
        return None
    zero = Money(Decimal(0), net.currency)
    if asked <= months:
        return zero
    end = min(asked, known)
    years = -(-end // 12)
    case = OwnershipCase(
        # One server at the price of all: cover is a share of the price, however many cards that buys.
        server=ServerPlatform("quote", "quote", "card", 1, net, 1.0, 1),
        servers=1,
        housing=Housing(per_kw_month=zero),
        tariff=(zero,),
        staff_per_fte_year=zero,
        fte=0.0,
        years=years,
        residual=(0.0,) * years,  # the same with either warranty
    )
    return (_covered(case, months) - _covered(case, end)).rounded()


def _covered(case: OwnershipCase, months: int) -> Money:
    """Present value of the case with so many months of warranty; of a year that is covered in part, the part.

    Between whole years by hand: the engine rounds each year, so that two halves would differ by a cent.
    """
    years, rest = divmod(months, 12)
    cost = evaluate(replace(case, warranty_months=12 * years)).present_value
    if rest:
        longer = evaluate(replace(case, warranty_months=12 * (years + 1))).present_value
        cost = cost + (longer - cost) * (Decimal(rest) / 12)
    return cost


def _lines(own: Money | None, others: list[Money | None], subject: str) -> Lever | None:
    """Lines beside the accelerators, against the lowest of the others for the same kinds."""
    if own is None:
        return None
    if own.amount == 0:
        if subject != Subject.DEPLOYMENT:
            return None
        return Lever(
            subject, msg("No line says that deployment is included: have it written in"), None
        )
    sums = [found for found in others if found is not None]
    least = min(sums, default=Money(Decimal(0), own.currency))
    if least >= own:
        return None
    text = (
        msg("Priced apart at %(own)s, elsewhere at %(least)s: have it included", own=str(own),
            least=str(least))
        if sums
        else msg("Priced apart at %(own)s: have it included", own=str(own))
    )  # fmt: skip
    return Lever(subject, text, own - least)


def _sum_of(row: Row, kinds: tuple[str, ...]) -> Money | None:
    """Net of the lines of `kinds` that bring no accelerator, in the base currency; None without a rate."""
    if row.net is None:
        return None
    own = Money(
        sum((row.beside.get(kind, Decimal(0)) for kind in kinds), Decimal(0)), row.quote.currency
    )
    if own.currency == row.net.currency:
        return own
    return None if row.rate is None else own.convert(row.rate)


def _sample(row: Row) -> Lever | None:
    """A sample that must pass our benchmark: what would be paid before anything is accepted."""
    terms = [term.term for term in row.quote.payments.all()]
    if not terms:
        return Lever(
            Subject.SAMPLE, msg("Have a sample machine pass our benchmark before any payment"), None
        )
    share = sum((term.percent for term in terms if term.event in BEFORE_ACCEPTANCE), Decimal(0))
    if share == 0:
        return None
    return Lever(
        Subject.SAMPLE,
        msg("%(share)s %% are paid before the acceptance: a sample machine must pass our benchmark first",
            share=f"{share.normalize():f}"),
        None
        if row.gross is None
        else Money(row.gross.amount * share / 100, row.gross.currency).rounded(),
    )  # fmt: skip


def rounds(rfq: Rfq) -> list[tuple[int, list[Concession]]]:
    """Concessions by round, in order."""
    found: dict[int, list[Concession]] = {}
    for row in rfq.concessions.select_related("vendor", "recorded_by"):
        found.setdefault(row.round, []).append(row)
    return sorted(found.items())
