"""Cloud bills as lines of one kind: AWS cost and usage reports (both versions), FOCUS exports of any cloud, and any
table by a saved mapping of its columns."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from core.messages import msg
from core.money import CURRENCIES
from planning.telemetry_formats.samples import Reading

# Our name → column of an AWS cost and usage report (legacy and 2.0 names) or of a FOCUS export.
AWS_CUR: Mapping[str, tuple[str, ...]] = {
    "line": ("identity/lineitemid", "identity_line_item_id"),
    "day": ("lineitem/usagestartdate", "line_item_usage_start_date", "chargeperiodstart"),
    "amount": ("lineitem/unblendedcost", "line_item_unblended_cost", "billedcost"),
    "currency": ("lineitem/currencycode", "line_item_currency_code", "billingcurrency"),
    "service": ("lineitem/productcode", "line_item_product_code", "servicename"),
    "usage": ("lineitem/usagetype", "line_item_usage_type", "skumeter", "skuid"),
    "quantity": (
        "lineitem/usageamount",
        "line_item_usage_amount",
        "consumedquantity",
        "pricingquantity",
    ),
    "team": ("resourcetags/user:team", "resource_tags_user_team"),
    "request": ("resourcetags/user:request", "resource_tags_user_request"),
}
_TAGS = (
    "resource_tags",
    "tags",
)  # a column that holds all tags as one JSON object (CUR 2.0, FOCUS)
# What may differ between two deliveries of the same line: AWS numbers lines anew in each, and amounts grow.
_MOVES = re.compile(
    r"cost|rate|amount|quantity|factor|price|discount|lineitemid|line_item_id|invoice|timeinterval|time_interval",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?$")
NEEDED = ("day", "amount")
NAMES = tuple(AWS_CUR)


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of a bill. `key` is the same for the same line read again. A credit is a negative amount.

    `restated`: the file tells all of its period again, so that a known key with another amount takes its place.
    """

    key: str
    day: date
    amount: Decimal
    currency: str
    service: str = ""
    usage: str = ""
    quantity: Decimal | None = None
    team: str = ""  # tag, as written
    request: str = ""  # tag, as written: R-0042
    restated: bool = False


def columns_of(header: Iterable[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Our name → the file's column: the saved mapping, else the AWS names that the header has."""
    names = {name.strip().lower(): name for name in header}
    if mapping:
        return {ours: names.get(theirs.strip().lower(), theirs) for ours, theirs in mapping.items()}
    return {
        ours: names[name]
        for ours, candidates in AWS_CUR.items()
        for name in candidates
        if name in names
    }


def lines(
    rows: Iterable[tuple[int, Mapping[str, str]]],
    columns: Mapping[str, str],
    reading: Reading,
    *,
    currency: str = "",
    cumulative: bool = False,
) -> Iterator[BillLine]:
    """Lines of a bill by `columns`. `currency` holds where the file names none. Zero lines are left out.

    `cumulative`: a report of a cloud, whose next delivery tells the same lines again, with numbers of their own and
    amounts that may have moved. Else a line is known by its number, or by all that it says.
    """
    seen: dict[str, int] = {}
    for line, cells in rows:
        row = {ours: (cells.get(theirs) or "").strip() for ours, theirs in columns.items()}
        if cumulative:
            row = {**_tags(cells), **{ours: text for ours, text in row.items() if text}}
        day, amount = _day(row.get("day", "")), _decimal(row.get("amount", ""))
        money = (row.get("currency") or currency).upper()
        if day is None or amount is None or money not in CURRENCIES:
            wrong = "day" if day is None else "amount" if amount is None else "currency"
            reading.refuse(
                msg(
                    "Line %(line)s: %(field)s is %(value)s, which cannot be used",
                    line=line,
                    field=wrong,
                    value=row.get(wrong) or "–",
                )
            )
            continue
        reading.read += 1
        if amount == 0 and not cumulative:
            continue
        key = _lasting_key(cells) if cumulative else _key(row, day)
        seen[key] = seen.get(key, 0) + 1
        yield BillLine(
            # Two equal lines of one file are two charges; the file read again has the same two.
            key=key if seen[key] == 1 else f"{key}-{seen[key]}",
            day=day, amount=amount, currency=money,
            service=row.get("service", "")[:120], usage=row.get("usage", "")[:200],
            quantity=_decimal(row.get("quantity", "")),
            team=row.get("team", "")[:80], request=row.get("request", "")[:20], restated=cumulative,
        )  # fmt: skip


def is_cumulative(header: Iterable[str], mapping: Mapping[str, str]) -> bool:
    """Whether the file is a report of AWS or a FOCUS export, read by its own names."""
    names = {name.strip().lower() for name in header}
    return not mapping and bool(names & {name for many in AWS_CUR.values() for name in many})


def _tags(cells: Mapping[str, str]) -> dict[str, str]:
    """Team and request of a column that holds all tags; a prefix of the cloud (`user_`, `user:`) is taken off."""
    found: dict[str, str] = {}
    for name, text in cells.items():
        if name.strip().lower() not in _TAGS or not text:
            continue
        try:
            tags = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for key, value in tags.items() if isinstance(tags, dict) else ():
            plain = re.sub(r"^(?:resourcetags/)?user[_:]", "", str(key).strip().lower())
            if plain in ("team", "request") and isinstance(value, str):
                found[plain] = value.strip()
    return found


def _lasting_key(cells: Mapping[str, str]) -> str:
    """Of everything in the line that the next delivery says in the same words."""
    parts = [
        f"{name.strip().lower()}={text.strip()}"
        for name, text in sorted(cells.items())
        if text.strip() and not _MOVES.search(name)
    ]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:40]


def _key(row: Mapping[str, str], day: date) -> str:
    parts = [
        day.isoformat(),
        *(row.get(name, "") for name in NAMES if name not in ("day", "amount")),
    ]
    if not row.get("line"):
        parts.append(row.get("amount", ""))
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:40]


def _day(text: str) -> date | None:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00").replace("/", "-")).date()
    except ValueError:
        return None


def _decimal(text: str) -> Decimal | None:
    """A number, thousands grouped by commas or not. A comma that groups nothing (12,50) is refused, not dropped."""
    try:
        value = Decimal(text.replace(",", "") if _GROUPED.match(text) else text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value) < Decimal(10) ** 12 else None
