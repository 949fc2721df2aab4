"""The memo of an award and the letters to vendors that were not chosen, drawn from the frozen record alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _

from core.models import Organisation
from core.money import Money
from core.organisation import organisation
from core.pdf import Attachment, render_pdf
from procurement.models import Award, AwardDocument
from procurement.models.awards import DocumentKind
from procurement.models.payments import EVENT_CHOICES
from procurement.models.rfqs import CriterionKind
from procurement.selectors.award_record import canonical


def render_document(document: AwardDocument) -> bytes:
    """PDF bytes; the same record and language give the same bytes. Takes seconds: call it in a task."""
    record = document.award.record
    if record is None:
        raise ValueError("an award that was not decided has no documents")
    at = datetime.fromisoformat(record["award"]["decided_at"])
    if document.kind == DocumentKind.REGRET:
        return render_pdf(
            "procurement/regret_letter.html", {"letter": letter(document)}, document.language, made_at=at,
            letterhead=sender_of(record),
        )  # fmt: skip
    return render_pdf(
        "procurement/award_memo.html",
        memo_context(record, document.award.record_hash),
        document.language,
        made_at=at,
        letterhead=sender_of(record),
        attachments=[
            Attachment(
                "award.json", canonical(record).encode(), f"SHA-256 {document.award.record_hash}"
            )
        ],
        archive=True,
    )


def sender_of(record: dict[str, Any]) -> Organisation:
    """The organisation as it was when the award was decided, not kept anywhere."""
    kept = record.get("organisation")
    if kept is None:  # decided before it was part of the record: what is there is all that is known
        return organisation()
    return Organisation(**kept)


def document_name(document: AwardDocument) -> str:
    """`award-RFQ-2026-0001-en.pdf`, `regret-RFQ-2026-0001-12.pdf`."""
    number = document.award.rfq.number
    if document.kind == DocumentKind.REGRET:
        return f"regret-{number}-{document.quote_id}.pdf"
    return f"award-{number}-{document.award_id}-{document.language}.pdf"


def memo_context(record: dict[str, Any], digest: str) -> dict[str, Any]:
    """The record with its amounts and times as values that the template can write in its language."""
    named = {line["request_id"]: line["request"] for line in record["rfq"]["lines"]}
    return {
        "record": record,
        "hash": digest,
        "award": _timed(record["award"], "proposed_at", "decided_at"),
        "rfq": _timed(record["rfq"], "published_at", "deadline", "opened_at")
        | {"openings": [_timed(row, "at") for row in record["rfq"]["openings"]]},
        "weights": [
            (CriterionKind(kind).label, weight)
            for kind, weight in sorted(
                record["weights"].items(),
                key=lambda pair: (-pair[1], pair[0]),  # PostgreSQL keeps no order of keys
            )
        ],
        "sheet": [
            row
            | {name: _amount(row[name]) for name in ("net", "tax", "gross", "per_warranted_year")}
            | {"own": _amount(row["own_net"])}
            for row in record["sheet"]
        ],
        "whole_costs": [_whole(row) for row in record.get("whole_costs", [])],
        "assumptions": _assumptions(record),
        "parts": [_money(row, "net", "tax", "gross") for row in record["parts"]],
        "against": [
            _money(row, "approved", "total", "difference")
            | {"request": named.get(row["request"], row["request"])}
            for row in record["against_approved"]
        ],
        "ranges": [
            row
            | {
                "label": CriterionKind(row["criterion"]).label,
                "free": Decimal(row["from"]) <= 0 and Decimal(row["to"]) >= 100,
            }
            for row in (record["sensitivity"] or {}).get("ranges", [])
        ],
        "shares": [
            row | {"share": Decimal(row["share"])}
            for row in (record["sensitivity"] or {}).get("shares", [])
        ],
        "payments": _payments(record),
        "quotes": [_timed(row, "received_at") for row in record["quotes"]],
        "statements": [_timed(row, "at") for row in record["statements"]],
    }


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    return _money(row, "total", "per_warranted_year") | {
        "lines": [_money(line, "amount") for line in row["lines"]],
        "per_pflop_hour": [_money(unit, "amount") for unit in row["per_pflop_hour"]],
        "per_million_tokens": [_money(unit, "amount") for unit in row["per_million_tokens"]],
    }


def _assumptions(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What any of the whole costs assumes, each once."""
    found: list[dict[str, Any]] = []
    for row in record.get("whole_costs", []):
        found += [one for one in row["assumptions"] if one not in found]
    return found


def _payments(record: dict[str, Any]) -> list[dict[str, Any]]:
    events = dict(EVENT_CHOICES)
    chosen = {part["vendor"] for part in record["parts"]}
    return [
        _money(row, "amount") | {"vendor": quote["vendor"], "event_label": events[row["event"]]}
        for quote in record["quotes"]
        if quote["vendor"] in chosen
        for row in quote["payments"]
    ]


def _timed(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return row | {name: datetime.fromisoformat(row[name]) if row[name] else None for name in names}


def _money(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return row | {
        name: Money(Decimal(row[name]["amount"]), row[name]["currency"]) if row[name] else None
        for name in names
    }


def _amount(text: str | None) -> Money | None:
    if text is None:
        return None
    amount, currency = text.replace(",", "").split(
        " "
    )  # as Money writes itself, with or without groups
    return Money(Decimal(amount), currency)


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter of regret, in fixed words: nothing that a person wrote about the choice is in it, for that may name
    another vendor or its price."""

    to: str
    address: str
    subject: str
    greeting: str
    paragraphs: tuple[str, ...]
    closing: str
    sender: str

    @property
    def text(self) -> str:
        """As the body of a mail."""
        return "\n\n".join((self.greeting, *self.paragraphs, f"{self.closing}\n{self.sender}"))


def letter(document: AwardDocument) -> Letter:
    """The letter in the language of its vendor."""
    record = document.award.record or {}
    quote = next(row for row in record["quotes"] if row["id"] == document.quote_id)
    rfq, award = record["rfq"], record["award"]
    with translation.override(document.language):
        known = {"number": rfq["number"], "title": rfq["title"]}
        first = _(
            "thank you for your quote (version %(revision)s) on our request for quotation %(number)s, %(title)s."
        ) % {**known, "revision": quote["revision"]}
        if quote["disqualified"]:
            second = _(
                "It was not evaluated to the end, because it did not meet a condition of this request."
            )
        elif award["to_none"]:
            second = _("We closed this request without an award.")
        else:
            second = _(
                "We compared all quotes by the criteria and weights that were fixed before they were opened, and did "
                "not choose yours."
            )  # fmt: skip
        third = _(
            "Prices and terms of others are confidential, as yours are. For questions on the evaluation of your own "
            "quote, please write to %(owner)s."
        ) % {"owner": rfq["owner"]}  # fmt: skip
        sender = sender_of(record)
        return Letter(
            to=quote["legal_name"] or quote["vendor"],
            address=quote["address"],
            subject=_("Your quote on %(number)s, %(title)s") % known,
            greeting=_("Dear Sir or Madam,"),
            paragraphs=(first, second, third),
            closing=_("Kind regards"),
            sender=f"{rfq['owner']}, {sender.legal_name or sender.name}",
        )


def award_letters(award: Award) -> list[tuple[AwardDocument, Letter | None]]:
    """Documents of an award, each letter with its text."""
    rows = list(award.documents.select_related("file", "quote__vendor"))
    for row in rows:
        row.award = award
    return [(row, letter(row) if row.kind == DocumentKind.REGRET else None) for row in rows]
