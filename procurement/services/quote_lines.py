"""The lines of a quote: exact numbers, price breaks, discounts, bundles and alternatives; what is wrong is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from core.errors import InputError
from core.messages import msg
from procurement.models import PerformancePromise, PriceBreak, Quote, QuoteLine
from procurement.models.quotes import LineKind
from procurement.promises import checked_promises
from procurement.quote_table import MAX_LINES
from procurement.totals import Break, check_breaks, price_at

LINE_FIELDS = (
    "kind", "description", "manufacturer", "part_number", "quantity", "unit", "unit_price",
    "tax_rate", "serialised", "accelerator_slug", "accelerators_per_item",
)  # fmt: skip
# Part of the content where they are told; a quote without them has the hash that it always had.
TOLD_FIELDS = ("list_price", "discount_rate", "bundle", "alternative_to")
CHUNK = 1000  # lines that are held as rows at once
PRICE_STEP = Decimal("0.000001")
TAX_LIMIT = "0 … 1"  # a share; no tax is 0, and is said
HOLDING = (
    LineKind.SERVER,
    LineKind.ACCELERATOR,
)  # kinds of which it must be said how many cards an item holds


def whole_number(field: str, value: Any, *, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(
            field,
            msg(
                "%(field)s is %(value)s; it must be a whole number from %(least)s to %(most)s",
                field=field,
                value=str(value),
                least=least,
                most=most,
            ),
            value=value,
            limit=most,
        )
    return value


def exact(field: str, value: Any, *, digits: int, line: int) -> Decimal:
    """`value` as a Decimal of at most `digits` places, at least 0. Floats are refused: they are not exact."""
    if isinstance(value, float) or isinstance(value, bool):
        raise InputError(
            field, msg("Line %(line)s: send %(field)s as text, not as a float", line=line, field=field),
            value=value,
        )  # fmt: skip
    try:
        number = Decimal(str(value))
    except ArithmeticError as error:
        raise InputError(
            field,
            msg("Line %(line)s: %(field)s is not a number: %(value)s", line=line, field=field,
                value=str(value)),
            value=value,
        ) from error  # fmt: skip
    if not number.is_finite() or number < 0 or number > Decimal(10) ** 12:
        raise InputError(
            field,
            msg("Line %(line)s: %(field)s is out of range: %(value)s", line=line, field=field,
                value=str(value)),
            value=value,
        )  # fmt: skip
    if number != number.quantize(Decimal(1).scaleb(-digits)):
        raise InputError(
            field,
            msg(
                "Line %(line)s: %(field)s has more than %(digits)s decimal places: %(value)s",
                line=line,
                field=field,
                digits=digits,
                value=str(value),
            ),
            value=value,
            limit=digits,
        )
    return number


def told(field: str, given: Mapping[str, Any], *, line: int, limit: str) -> Any:
    """The value of `field`, which must be said: what is missing is neither guessed nor 0."""
    value = given.get(field)
    if value is None or value == "":
        raise InputError(
            field,
            msg("Line %(line)s: %(field)s is missing; say one of: %(limit)s", line=line, field=field,
                limit=limit),
            limit=limit,
        )  # fmt: skip
    return value


def add_lines(quote: Quote, lines: Sequence[Mapping[str, Any]]) -> None:
    """Check and keep the lines, a chunk at a time. Raises InputError naming the first line that is wrong."""
    if not lines:
        raise InputError("lines", msg("A quote has at least one line"), value=0, limit=1)
    if len(lines) > MAX_LINES:
        raise InputError(
            "lines", msg("A quote has at most %(limit)s lines", limit=MAX_LINES),
            value=len(lines), limit=MAX_LINES,
        )  # fmt: skip
    asked = {line.position: line for line in quote.rfq.lines.all()}
    instead = [given.get("alternative_to") for given in lines]
    for start in range(0, len(lines), CHUNK):
        rows, breaks, promises = [], [], []
        for position, given in enumerate(lines[start : start + CHUNK], start + 1):
            row, steps = checked_line(quote, position, given, asked)
            check_alternative(row, instead)
            rows.append(row)
            breaks += [(row, step) for step in steps]
            promises += [
                PerformancePromise(line=row, **columns)
                for columns in checked_promises(position, given.get("promises") or ())
            ]
        QuoteLine.objects.bulk_create(rows)
        PriceBreak.objects.bulk_create(
            PriceBreak(
                line=row,
                from_quantity=step.from_quantity,
                to_quantity=step.to_quantity,
                unit_price=step.unit_price,
            )
            for row, step in breaks
        )
        PerformancePromise.objects.bulk_create(promises)


def check_alternative(row: QuoteLine, alternatives: Sequence[Any]) -> None:
    """An alternative stands for a line of the quote that is none itself; `alternatives` by position."""
    instead = row.alternative_to
    if instead is None:
        return
    there = 1 <= instead <= len(alternatives) and instead != row.position
    if not there or alternatives[instead - 1] is not None:
        raise InputError(
            "alternative_to",
            msg("Line %(line)s is instead of line %(value)s, which is no line to stand in for",
                line=row.position, value=instead),
            value=instead,
        )  # fmt: skip


def checked_line(
    quote: Quote, position: int, given: Mapping[str, Any], asked: Mapping[int, Any]
) -> tuple[QuoteLine, tuple[Break, ...]]:
    """One line, unsaved, and its price breaks. Raises InputError naming the line and the field."""
    quantity = exact("quantity", given.get("quantity"), digits=3, line=position)
    if quantity <= 0:
        raise InputError(
            "quantity", msg("Line %(line)s: the quantity must be above 0", line=position),
            value=quantity, limit="> 0",
        )  # fmt: skip
    kind = told("kind", given, line=position, limit=", ".join(LineKind.values))
    if kind not in LineKind.values:
        raise InputError(
            "kind",
            msg("Line %(line)s: %(value)s is not a kind of line", line=position, value=str(kind)),
            value=kind, limit=", ".join(LineKind.values),
        )  # fmt: skip
    description = " ".join(str(given.get("description", "")).split())
    if not description:
        raise InputError("description", msg("Line %(line)s needs a description", line=position))
    price, steps, list_price, discount = _price(position, quantity, given)
    serialised = told("serialised", given, line=position, limit="true, false")
    if not isinstance(serialised, bool):
        raise InputError(
            "serialised",
            msg("Line %(line)s: %(field)s: %(value)s is neither yes nor no", line=position, field="serialised",
                value=str(serialised)),
            value=serialised, limit="true, false",
        )  # fmt: skip
    per_item = _per_item(position, kind, given)
    if (serialised or per_item) and quantity != quantity.to_integral_value():
        raise InputError(
            "quantity",
            msg("Line %(line)s: items with serial numbers are counted in whole numbers",
                line=position),
            value=quantity,
        )  # fmt: skip
    rate = exact(
        "tax_rate", told("tax_rate", given, line=position, limit=TAX_LIMIT), digits=5, line=position
    )
    if rate > 1:
        raise InputError(
            "tax_rate",
            msg("Line %(line)s: the tax rate is a share; 13 %% is 0.13", line=position),
            value=rate, limit=TAX_LIMIT,
        )  # fmt: skip
    rfq_line = _answered(position, given.get("rfq_line"), per_item, asked)
    instead = given.get("alternative_to")
    row = QuoteLine(
        quote=quote,
        position=position,
        rfq_line=rfq_line,
        kind=kind,
        description=description[:300],
        manufacturer=str(given.get("manufacturer", "")).strip()[:80],
        part_number=str(given.get("part_number", "")).strip()[:80],
        quantity=quantity,
        unit=str(given.get("unit") or "pcs")[:20],
        unit_price=price,
        tax_rate=rate,
        serialised=serialised,
        accelerator_slug=str(
            given.get("accelerator_slug") or (rfq_line.accelerator_slug if rfq_line else "")
        )[:80],
        accelerators_per_item=per_item,
        list_price=list_price,
        discount_rate=discount,
        bundle=" ".join(str(given.get("bundle") or "").split())[:80],
        alternative_to=None
        if instead is None
        else whole_number("alternative_to", instead, least=1, most=MAX_LINES),
    )
    return row, steps


def _price(
    position: int, quantity: Decimal, given: Mapping[str, Any]
) -> tuple[Decimal, tuple[Break, ...], Decimal | None, Decimal | None]:
    """Unit price, price breaks, list price and discount; what is told twice must agree."""
    steps = check_breaks(
        [
            Break(
                whole_number("from_quantity", step.get("from_quantity"), least=1, most=10**9),
                None
                if step.get("to_quantity") is None
                else whole_number("to_quantity", step["to_quantity"], least=1, most=10**9),
                exact("unit_price", step.get("unit_price"), digits=6, line=position),
            )
            for step in given.get("breaks") or ()
        ]
    )
    list_price, discount = _less_discount(position, given)
    told = given.get("unit_price")
    reckoned = price_at(quantity, steps) if steps else None
    if list_price is not None:
        net = (list_price * (1 - (discount or 0))).quantize(PRICE_STEP, rounding=ROUND_HALF_UP)
        if reckoned is not None and reckoned != net:
            raise InputError(
                "list_price",
                msg("Line %(line)s: the list price less the discount is not the unit price of its price breaks",
                    line=position),
            )  # fmt: skip
        reckoned = net
    if told in (None, ""):
        if reckoned is None:
            raise InputError(
                "unit_price",
                msg("Line %(line)s has no price; a missing price is not 0", line=position),
            )
        return reckoned, steps, list_price, discount
    price = exact("unit_price", told, digits=6, line=position)
    if reckoned is not None and price != reckoned:
        text = (
            msg("Line %(line)s: the unit price is not that of its price breaks", line=position)
            if list_price is None
            else msg("Line %(line)s: the unit price is not the list price less the discount", line=position)
        )  # fmt: skip
        raise InputError("unit_price", text, value=price, limit=reckoned)
    return price, steps, list_price, discount


def _less_discount(
    position: int, given: Mapping[str, Any]
) -> tuple[Decimal | None, Decimal | None]:
    """List price and discount (a share), where they are told. A discount needs a price that it is taken off."""
    told, share = given.get("list_price"), given.get("discount_rate")
    list_price = None if told in (None, "") else exact("list_price", told, digits=6, line=position)
    if share in (None, ""):
        return list_price, None
    discount = exact("discount_rate", share, digits=5, line=position)
    if discount > 1:
        raise InputError(
            "discount_rate",
            msg("Line %(line)s: the discount is a share; 10 %% is 0.10", line=position),
            value=discount, limit=1,
        )  # fmt: skip
    if list_price is None:
        raise InputError(
            "list_price",
            msg(
                "Line %(line)s has a discount but no list price that it is taken off", line=position
            ),
        )
    return list_price, discount


def _per_item(position: int, kind: str, given: Mapping[str, Any]) -> int:
    """Accelerators in one item. What is no server and no card, and answers no line, holds none unless it says so."""
    field, answers = "accelerators_per_item", given.get("rfq_line") is not None
    if kind in HOLDING or answers:
        told(field, given, line=position, limit="0 … 10000")
    value = given.get(field)
    return 0 if value is None else whole_number(field, value, least=0, most=10_000)


def _answered(position: int, answers: Any, per_item: int, asked: Mapping[int, Any]) -> Any:
    """The asked line that a line answers, None for none."""
    if answers is None:
        return None
    if answers not in asked:
        raise InputError(
            "rfq_line",
            msg("Line %(line)s answers line %(value)s, which was not asked", line=position,
                value=str(answers)),
            value=answers,
        )  # fmt: skip
    if per_item == 0:
        raise InputError(
            "accelerators_per_item",
            msg("Line %(line)s: say how many accelerators one item holds", line=position),
            value=0, limit=1,
        )  # fmt: skip
    return asked[answers]
