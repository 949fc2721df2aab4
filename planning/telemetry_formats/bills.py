"""Cloud bills as lines of one kind: AWS cost and usage reports, and any table by a saved mapping of its columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from core.messages import msg
from core.money import CURRENCIES
from planning.telemetry_formats.samples import Reading

# Our name → column of an AWS cost and usage report (legacy and 2.0 names).
AWS_CUR: Mapping[str, tuple[str, ...]] = {
    "line": ("identity/lineitemid", "identity_line_item_id"),
    "day": ("lineitem/usagestartdate", "line_item_usage_start_date"),
    "amount": ("lineitem/unblendedcost", "line_item_unblended_cost"),
    "currency": ("lineitem/currencycode", "line_item_currency_code"),
    "service": ("lineitem/productcode", "line_item_product_code"),
    "usage": ("lineitem/usagetype", "line_item_usage_type"),
    "quantity": ("lineitem/usageamount", "line_item_usage_amount"),
    "team": ("resourcetags/user:team", "resource_tags_user_team"),
    "request": ("resourcetags/user:request", "resource_tags_user_request"),
}
NEEDED = ("day", "amount")
NAMES = tuple(AWS_CUR)


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of a bill. `key` is the same for the same line read again. A credit is a negative amount."""

    key: str
    day: date
    amount: Decimal
    currency: str
    service: str = ""
    usage: str = ""
    quantity: Decimal | None = None
    team: str = ""  # tag, as written
    request: str = ""  # tag, as written: R-0042


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
) -> Iterator[BillLine]:
    """Lines of a bill by `columns`. `currency` holds where the file names none. Zero lines are left out."""
    seen: dict[str, int] = {}
    for line, cells in rows:
        row = {ours: (cells.get(theirs) or "").strip() for ours, theirs in columns.items()}
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
        if amount == 0:
            continue
        key = _key(row, day)
        seen[key] = seen.get(key, 0) + 1
        yield BillLine(
            # Two equal lines of one file are two charges; the file read again has the same two.
            key=key if seen[key] == 1 else f"{key}-{seen[key]}",
            day=day, amount=amount, currency=money,
            service=row.get("service", "")[:120], usage=row.get("usage", "")[:200],
            quantity=_decimal(row.get("quantity", "")),
            team=row.get("team", "")[:80], request=row.get("request", "")[:20],
        )  # fmt: skip


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
    try:
        value = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value) < Decimal(10) ** 12 else None
