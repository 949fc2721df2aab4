"""How one value of a request is declared, and read from what a person or a program wrote.

Values are in SI units. "7B", "1.5T", "40k" and "5 %" are read; what is out of range is refused by naming the field, the
value and the limit. Nothing is clamped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from core.errors import DomainError, InputError
from core.messages import Message, msg, shown
from core.strict_json import JSONProblem, check_json
from planning.study import profiles
from planning.study.load_series import check_series


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a request.

    `type`: count (whole), number, share (0.2 = 20 %), choice, text, texts (one or several), config (JSON), flag, date,
    amount (exact decimal), series (hourly load, from a file or as a week), months (twelve loads).
    """

    name: str
    label: Message
    type: str
    unit: str = ""  # SI, or what is counted
    help: Message | None = None
    required: bool = False
    default: float | int | str | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[tuple[str, Message], ...] = ()


_SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "b": 1e9, "B": 1e9, "g": 1e9, "G": 1e9, "t": 1e12,
          "T": 1e12}  # fmt: skip
_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([kKmMbBgGtT%]?)")
MAX_CONFIG = 100_000  # characters
MOST_NAMES = 200
LARGEST_AMOUNT = Decimal(10) ** 15


class WorkloadErrors(DomainError):
    """Several values are out of range: one InputError each."""

    status = 422
    code = "invalid_input"

    def __init__(self, errors: list[InputError]) -> None:
        super().__init__(errors[0].message)
        self.errors = errors


def parse_number(field: str, value: object) -> float:
    """`value` as a finite float: a number, or text with a suffix (7B, 1.5T, 40k, 5 %). Raises InputError."""
    refused = InputError(
        field,
        msg("%(field)s: %(value)s is not a number", field=field, value=shown(value)),
        value=shown(value) if isinstance(value, int) else value,
        limit="number",
    )
    if isinstance(value, bool) or value is None:
        raise refused
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:  # more digits than any quantity has
            raise refused from None
    else:
        match = _NUMBER.fullmatch(str(value).strip().replace(",", "").replace("_", ""))
        if match is None:
            raise refused
        digits, suffix = match.groups()
        number = float(digits) / 100 if suffix == "%" else float(digits) * _SCALE[suffix]
    if not math.isfinite(number):
        raise refused
    return number


def check_value(field: Field, value: object) -> Any:
    """`value` as `field` stores it. Raises InputError naming field, value and limit."""
    if field.type == "text":
        text = str(value).strip()
        if len(text) > 120:
            raise InputError(
                field.name,
                msg("%(field)s is longer than %(limit)s characters", field=field.name, limit=120),
                value=text[:140], limit=120,
            )  # fmt: skip
        return text
    if field.type == "choice":
        codes = [code for code, _label in field.choices]
        if value not in codes:
            raise InputError(
                field.name,
                msg("%(field)s: %(value)s is none of %(limit)s", field=field.name, value=shown(value),
                    limit=", ".join(codes)),
                value=value, limit=", ".join(codes),
            )  # fmt: skip
        return value
    if field.type in _READERS:
        return _READERS[field.type](field, value)
    number = parse_number(field.name, value)
    if (field.minimum is not None and number < field.minimum) or (
        field.maximum is not None and number > field.maximum
    ):
        limit = f"{field.minimum:g} … {field.maximum:g}"
        raise _outside(field, value, limit)
    if field.type == "count":
        if number != int(number):
            raise InputError(
                field.name,
                msg("%(field)s is %(value)s; it must be a whole number", field=field.name, value=shown(value)),
                value=value, limit="whole number",
            )  # fmt: skip
        return int(number)
    return number


def _outside(field: Field, value: object, limit: str) -> InputError:
    told = {"field": field.name, "value": shown(value), "limit": limit}
    text = (
        msg("%(field)s is %(value)s; it must be within %(limit)s %(unit)s", **told, unit=field.unit)
        if field.unit
        else msg("%(field)s is %(value)s; it must be within %(limit)s", **told)
    )
    return InputError(field.name, text, value=value, limit=limit)


def _config(field: Field, value: object) -> dict[str, Any]:
    if isinstance(value, str):
        if len(value) > MAX_CONFIG:
            raise InputError(
                field.name,
                msg("%(field)s is longer than %(limit)s characters", field=field.name, limit=MAX_CONFIG),
                value=len(value), limit=MAX_CONFIG,
            )  # fmt: skip
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InputError(
                field.name,
                msg("%(field)s is not valid JSON: %(problem)s", field=field.name, problem=str(error)[:200]),
                value="", limit="JSON",
            ) from None  # fmt: skip
    try:
        check_json(value, field.name)
    except JSONProblem as problem:
        raise problem.named(field.name) from None
    if not isinstance(value, dict) or not value:
        raise InputError(
            field.name,
            msg("%(field)s must be a JSON object", field=field.name),
            limit="JSON object",
        )
    return value


def _texts(field: Field, value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise InputError(
            field.name,
            msg("%(field)s must be a name or a list of names", field=field.name),
            value=shown(value), limit="names",
        )  # fmt: skip
    names = [part.strip() for part in parts if part.strip()]
    if len(names) > MOST_NAMES or any(len(name) > 120 for name in names):
        raise InputError(
            field.name,
            msg("%(field)s takes at most %(limit)s names of 120 characters", field=field.name, limit=MOST_NAMES),
            value=len(names), limit=MOST_NAMES,
        )  # fmt: skip
    return tuple(dict.fromkeys(names))


def _flag(field: Field, value: object) -> bool:
    if isinstance(value, bool):
        return value
    known = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
    }
    flag = known.get(str(value).strip().lower())
    if flag is None:
        raise InputError(
            field.name,
            msg("%(field)s: %(value)s is neither true nor false", field=field.name, value=shown(value)),
            value=value, limit="true, false",
        )  # fmt: skip
    return flag


def _date(field: Field, value: object) -> date:
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value).strip())
    except ValueError:
        raise InputError(
            field.name,
            msg("%(field)s: %(value)s is not a date such as 2027-03-31", field=field.name, value=shown(value)),
            value=value, limit="YYYY-MM-DD",
        ) from None  # fmt: skip


def _amount(field: Field, value: object) -> Decimal:
    try:
        amount = Decimal(str(value).strip().replace(",", ""))
    except InvalidOperation:
        amount = Decimal("NaN")
    if isinstance(value, bool) or not amount.is_finite():
        raise InputError(
            field.name,
            msg("%(field)s: %(value)s is not a number", field=field.name, value=shown(value)),
            value=value,
        )
    if amount < 0 or amount > LARGEST_AMOUNT:
        raise _outside(field, value, f"0 … {LARGEST_AMOUNT:g}")
    return amount


def _series(_field: Field, value: object) -> dict[str, Any]:
    return check_series(value)


_READERS: dict[str, Callable[[Field, object], Any]] = {
    "config": _config,
    "texts": _texts,
    "flag": _flag,
    "date": _date,
    "amount": _amount,
    "series": _series,
    "months": lambda field, value: profiles.read_months(field.name, value),
}


def is_empty(value: object) -> bool:
    """Whether nothing was given: a missing value, or only blanks."""
    return value is None or (isinstance(value, str) and not value.strip())
