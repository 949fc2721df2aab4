"""Refusals: a value out of range becomes an :class:`~core.errors.InputError` that names field, value and limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InputError
from core.messages import msg
from core.money import Money

Floats = NDArray[np.float64]


def refuse(field: str, value: object, limit: str) -> InputError:
    """The error for `value` of `field`, of which `limit` says what it must be."""
    return InputError(
        field,
        msg(
            "%(field)s is %(value)s; it must be %(limit)s",
            field=field,
            value=str(value),
            limit=limit,
        ),
        value=value,
        limit=limit,
    )


def non_negative(field: str, value: float | Decimal) -> None:
    """Refuse a negative, infinite or undefined number."""
    if not (0 <= value < math.inf):
        raise refuse(field, value, ">= 0")


def positive(field: str, value: float | Decimal) -> None:
    """Refuse zero and whatever :func:`non_negative` refuses."""
    if not (0 < value < math.inf):
        raise refuse(field, value, "> 0")


def fraction(field: str, value: float | Decimal) -> None:
    """Refuse what is not between 0 and 1 (a utilisation above 100 %, a negative share)."""
    if not (0 <= value <= 1):
        raise refuse(field, value, "0 .. 1")


def below_one(field: str, value: float) -> None:
    """Refuse what is not in [0, 1)."""
    if not (0 <= value < 1):
        raise refuse(field, value, "0 <= x < 1")


def price(field: str, money: Money) -> None:
    """Refuse a negative or undefined price."""
    if not money.amount.is_finite() or money.amount < 0:
        raise refuse(field, money.amount, ">= 0")


def same_currency(field: str, *amounts: Money | None) -> str:
    """The one currency of all `amounts`; refuse two."""
    found = sorted({money.currency for money in amounts if money is not None})
    if len(found) != 1:
        raise InputError(
            field,
            msg(
                "%(field)s mixes currencies (%(found)s); convert them first at a dated rate",
                field=field,
                found=", ".join(found) or "none",
            ),
            value=tuple(found),
            limit=1,
        )
    return found[0]


def series(field: str, values: ArrayLike, *, upper: float = math.inf) -> Floats:
    """`values` as a non-empty 1-d float array, each within [0, `upper`]; the error names the index."""
    array = np.asarray(values, dtype=np.float64)
    limit = ">= 0" if math.isinf(upper) else f"0 .. {upper:g}"
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            field,
            msg("%(field)s must be a series with at least one value", field=field),
            value=array.shape,
            limit=1,
        )
    bad = np.flatnonzero(~((array >= 0) & (array <= upper) & np.isfinite(array)))
    if bad.size:
        index = int(bad[0])
        raise refuse(f"{field}[{index}]", float(array[index]), limit)
    return array


def same_length(field: str, *arrays: Sequence[object] | Floats) -> int:
    """The one length of all `arrays`; refuse two."""
    lengths = sorted({len(array) for array in arrays})
    if len(lengths) != 1:
        raise InputError(
            field,
            msg(
                "%(field)s: the series have different lengths (%(lengths)s)",
                field=field,
                lengths=", ".join(str(n) for n in lengths),
            ),
            value=tuple(lengths),
        )
    return lengths[0]
