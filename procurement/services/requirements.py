"""Criteria of an RFQ and a quote's answers to them, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from procurement.models import Quote, QuoteAnswer, Rfq, RfqRequirement
from procurement.requirements import (
    Answered,
    Required,
    check_answers,
    check_requirements,
    plain,
    words,
)
from procurement.selectors.requirements import planned


def set_requirements(
    rfq: Rfq, given: Iterable[Mapping[str, Any]] | None
) -> tuple[list[str], list[str]]:
    """Replace the criteria of a draft; None takes them from the approved plans. The criteria before and now, in words.

    A row that says what the plans say is one of the plans. Raises InputError naming the row.
    """
    lines = list(
        rfq.lines.select_related("plan__study", "plan__revision__request").order_by("position")
    )
    plans = planned(lines)
    if given is None:
        rows: tuple[Required, ...] = plans
    else:
        known = [row.to_json() for row in plans]
        rows = tuple(
            replace(row, from_plan=row.to_json() in known)
            for row in check_requirements(given, [line.position for line in lines])
        )
    before = [words(row.asked).render() for row in rfq.requirements.all()]
    rfq.requirements.all().delete()
    RfqRequirement.objects.bulk_create(
        RfqRequirement(
            rfq=rfq,
            position=number,
            kind=row.kind.value,
            benchmark=row.benchmark,
            value=row.value,
            unit=row.unit,
            per=row.per.value,
            day=row.day,
            lines=list(row.lines),
            from_plan=row.from_plan,
        )
        for number, row in enumerate(rows, 1)
    )
    return before, [words(row).render() for row in rows]


def add_answers(quote: Quote, given: Iterable[Mapping[str, Any]]) -> None:
    """Keep what a quote says of the criteria. Raises InputError naming the criterion."""
    asked = {row.position: row for row in quote.rfq.requirements.all()}
    found = check_answers(given, {number: row.asked for number, row in asked.items()})
    QuoteAnswer.objects.bulk_create(
        QuoteAnswer(quote=quote, requirement=asked[number], **_columns(answer))
        for number, answer in sorted(found.items())
    )


def copy_answers(old: Quote, new: Quote) -> None:
    """The same answers in a new version of a quote."""
    QuoteAnswer.objects.bulk_create(
        QuoteAnswer(quote=new, requirement_id=row.requirement_id, **_columns(row.said))
        for row in old.answers.all()
    )


def answers_json(quote: Quote) -> list[list[Any]]:
    """The answers as they are hashed."""
    return [
        [
            row.requirement.position,
            None if row.value is None else plain(row.value),
            None if row.day is None else row.day.isoformat(),
            row.stated,
            row.note,
        ]
        for row in quote.answers.select_related("requirement").order_by("requirement__position")
    ]


def _columns(answer: Answered) -> dict[str, Any]:
    return {
        "value": answer.value,
        "day": answer.day,
        "stated": answer.stated,
        "note": answer.note,
    }
