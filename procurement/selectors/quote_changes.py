"""What a new version of a quote changed: every field and line, before and after, and what it does to the total."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.db.models import Field
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from core.errors import InvalidTransition
from core.messages import msg
from core.money import Money, money_json
from procurement.models import Quote, QuoteLine
from procurement.models.requirements import RfqRequirement
from procurement.promises import written
from procurement.requirements import Answered, plain

HEAD = (
    "reference", "currency", "tax_mode", "valid_until", "lead_time_days", "partial_delivery", "incoterm",
    "payment_terms", "notes",
)  # fmt: skip
LINE = (
    "kind", "description", "manufacturer", "part_number", "quantity", "unit", "list_price", "discount_rate",
    "unit_price", "tax_rate", "serialised", "accelerators_per_item", "accelerator_slug", "bundle", "alternative_to",
)  # fmt: skip


def shown_value(row: Any, field: Field[Any, Any]) -> str:
    """A field's value as a person reads it; what is empty is not stated."""
    shown = getattr(row, f"get_{field.name}_display", None)
    value = shown() if shown else getattr(row, field.name)
    if value is None or value == "":
        return _("not stated")
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    return plain(value) if isinstance(value, Decimal) else str(value)


@dataclass(frozen=True, slots=True)
class Change:
    """One field: its name, what people call it, and both values, as data and in words."""

    field: str
    label: str
    before: str | bool | None
    after: str | bool | None
    shown_before: str
    shown_after: str

    def to_json(self) -> dict[str, Any]:
        return {"field": self.field, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line that came, went or changed; its net amounts where it is part of the total."""

    before: QuoteLine | None
    after: QuoteLine | None
    changes: tuple[Change, ...]
    net_before: Money | None
    net_after: Money | None

    @property
    def line(self) -> QuoteLine:
        found = self.after or self.before
        if found is None:
            raise ValueError("a change of no line")
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "before": None if self.before is None else self.before.position,
            "after": None if self.after is None else self.after.position,
            "description": self.line.description,
            "changes": [one.to_json() for one in self.changes],
            "net_before": money_json(self.net_before),
            "net_after": money_json(self.net_after),
        }


@dataclass(frozen=True, slots=True)
class QuoteChanges:
    """A version against the one before it."""

    before: Quote
    after: Quote
    head: tuple[Change, ...]
    lines: tuple[LineChange, ...]
    warranty: tuple[Change, ...]
    answers: tuple[Change, ...]
    payments: tuple[str, str] | None  # both as text, where they differ
    files: tuple[tuple[str, ...], tuple[str, ...]]  # taken out, added: by name
    total_before: Money
    total_after: Money

    @property
    def difference(self) -> Money | None:
        """Of the totals with tax, in the quote's currency; None when the currency itself changed."""
        if self.total_before.currency != self.total_after.currency:
            return None
        return self.total_after - self.total_before

    @property
    def is_empty(self) -> bool:
        return not (
            self.head or self.lines or self.warranty or self.answers or self.payments or any(self.files)
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {
            "before": {"quote": self.before.pk, "revision": self.before.revision},
            "after": {"quote": self.after.pk, "revision": self.after.revision},
            "head": [one.to_json() for one in self.head],
            "lines": [one.to_json() for one in self.lines],
            "warranty": [one.to_json() for one in self.warranty],
            "answers": [one.to_json() for one in self.answers],
            "payments": None if self.payments is None else list(self.payments),
            "files": {"removed": list(self.files[0]), "added": list(self.files[1])},
            "total_before": money_json(self.total_before),
            "total_after": money_json(self.total_after),
            "difference": money_json(self.difference),
        }


def quote_changes(quote: Quote) -> QuoteChanges | None:
    """What `quote` changed against the version before it; None for a first version. Constant number of queries.

    Raises InvalidTransition while the bids are sealed, whoever asks.
    """
    if quote.rfq.prices_hidden:
        raise InvalidTransition(msg("The bids of %(rfq)s are sealed", rfq=quote.rfq.number))
    pair = list(
        Quote.objects.filter(rfq=quote.rfq_id, vendor=quote.vendor_id, revision__lte=quote.revision)
        .order_by("-revision")
        .select_related("rfq", "vendor", "warranty")
        .prefetch_related(
            "lines__breaks", "lines__promises", "lines__rfq_line", "payments", "attachments__file", "answers",
            "rfq__requirements",
        )[:2]
    )  # fmt: skip
    if len(pair) < 2:
        return None
    after, before = pair
    terms = tuple(
        "; ".join(_term(row.term.to_json()) for row in one.payments.all())
        for one in (before, after)
    )
    papers = [
        {row.file.sha256: row.file.name for row in one.attachments.all()} for one in (before, after)
    ]
    return QuoteChanges(
        before=before,
        after=after,
        head=_changes(before, after, HEAD),
        lines=tuple(_line_changes(before, after)),
        warranty=_changes(
            before.warranty, after.warranty,
            [one.name for one in before.warranty._meta.concrete_fields if one.name not in ("id", "quote")],
        ),
        answers=tuple(_answer_changes(before, after)),
        payments=(terms[0], terms[1]) if terms[0] != terms[1] else None,
        files=(
            tuple(name for key, name in papers[0].items() if key not in papers[1]),
            tuple(name for key, name in papers[1].items() if key not in papers[0]),
        ),
        total_before=before.totals().gross,
        total_after=after.totals().gross,
    )  # fmt: skip


def _term(term: dict[str, Any]) -> str:
    return " ".join(
        str(part) for part in (term["percent"], term["event"], term["days"] or "", term["label"]) if part
    )  # fmt: skip


def _changes(before: Any, after: Any, names: Iterable[str]) -> tuple[Change, ...]:
    found = []
    for name in names:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        field = before._meta.get_field(name)
        found.append(
            Change(name, str(capfirst(field.verbose_name)), _data(old), _data(new),
                   shown_value(before, field), shown_value(after, field))
        )  # fmt: skip
    return tuple(found)


def _data(value: Any) -> str | bool | None:
    if value is None or isinstance(value, bool):
        return value
    return plain(value) if isinstance(value, Decimal) else str(value)


def _line_changes(before: Quote, after: Quote) -> list[LineChange]:
    nets = [_nets(one) for one in (before, after)]
    found = []
    for old, new in _paired(list(before.lines.all()), list(after.lines.all())):
        changes: tuple[Change, ...] = ()
        if old is not None and new is not None:
            changes = (
                *_changes(old, new, LINE),
                *_break_changes(old, new),
                *_promise_changes(old, new),
                *_asked_changes(old, new),
            )
            if not changes:
                continue
        found.append(
            LineChange(
                old, new, changes,
                None if old is None else nets[0].get(old.pk),
                None if new is None else nets[1].get(new.pk),
            )
        )  # fmt: skip
    return found


def _nets(quote: Quote) -> dict[int, Money]:
    offered = quote.offered_lines
    return {
        line.pk: amount.net
        for line, amount in zip(offered, quote.totals(offered).lines, strict=True)
    }


def _text_changes(field: str, label: str, before: str, after: str) -> tuple[Change, ...]:
    if before == after:
        return ()
    none = _("not stated")
    return (Change(field, label, before, after, before or none, after or none),)


def _break_changes(old: QuoteLine, new: QuoteLine) -> tuple[Change, ...]:
    texts = ["; ".join(str(step) for step in one.breaks.all()) for one in (old, new)]
    return _text_changes("breaks", _("Price breaks"), *texts)


def _promise_changes(old: QuoteLine, new: QuoteLine) -> tuple[Change, ...]:
    texts = ["; ".join(sorted(written(one.promises.all()).splitlines())) for one in (old, new)]
    return _text_changes("promises", _("Promised throughput"), *texts)


def _asked_changes(old: QuoteLine, new: QuoteLine) -> tuple[Change, ...]:
    if old.rfq_line_id == new.rfq_line_id:
        return ()
    numbers = [None if one.rfq_line is None else str(one.rfq_line.position) for one in (old, new)]
    return (
        Change("rfq_line", _("Answers line"), numbers[0], numbers[1], numbers[0] or _("none"),
               numbers[1] or _("none")),
    )  # fmt: skip


Pair = tuple[QuoteLine | None, QuoteLine | None]


def _paired(before: Sequence[QuoteLine], after: Sequence[QuoteLine]) -> list[Pair]:
    """The lines that are the same, though moved: by part number, else by description, else by place. In the new order,
    lines that went last."""
    left = {line.pk: line for line in before}
    partner: dict[int, QuoteLine] = {}
    keys: tuple[Callable[[QuoteLine], Any], ...] = (
        lambda line: (line.position, line.part_number, line.description),
        lambda line: (line.rfq_line_id, line.part_number) if line.part_number else None,
        lambda line: (line.rfq_line_id, line.description.casefold()),
        lambda line: line.position,
    )
    for key in keys:
        free: dict[Any, list[QuoteLine]] = {}
        for line in left.values():
            free.setdefault(key(line), []).append(line)
        for line in after:
            known = key(line)
            if line.pk in partner or known is None or not free.get(known):
                continue
            found = free[known].pop(0)
            partner[line.pk] = found
            del left[found.pk]
    pairs: list[Pair] = [(partner.get(line.pk), line) for line in after]
    return pairs + [(line, None) for line in left.values()]


def _answer_changes(before: Quote, after: Quote) -> list[Change]:
    said = [{row.requirement_id: row.said for row in one.answers.all()} for one in (before, after)]
    found = []
    for requirement in after.rfq.requirements.all():
        old, new = (one.get(requirement.pk) for one in said)
        if old == new:
            continue
        texts = [_answer(requirement, one) for one in (old, new)]
        none = _("not stated")
        found.append(
            Change(
                f"criterion_{requirement.position}", requirement.words.render(_), texts[0], texts[1],
                texts[0] or none, texts[1] or none,
            )
        )  # fmt: skip
    return found


def _answer(requirement: RfqRequirement, answer: Answered | None) -> str:
    if answer is None:
        return ""
    figure: date | str | None = answer.day
    if answer.value is not None:
        figure = f"{plain(answer.value)} {requirement.unit}"
    word = None if answer.stated is None else _("Yes") if answer.stated else _("No")
    return " · ".join(str(part) for part in (figure, word, answer.note) if part)
