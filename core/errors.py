"""Errors that a user may see. Each carries a translatable message; middleware and API map them to answers."""

from __future__ import annotations

from collections.abc import Sequence

from core.messages import Message, msg


class DomainError(Exception):
    """A rule of the product was broken. Safe to show: the message is meant for the user."""

    status = 409
    code = "conflict"

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message.render()


class Unavailable(DomainError):
    """Something the product leans on cannot be used now. Nothing was saved; the same step may be tried again."""

    status = 503
    code = "unavailable"
    retry_after = 30  # s


class StoreBusy(Unavailable):
    """Another write held the data too long."""

    code = "busy"
    retry_after = 5  # s


class StoreAway(Unavailable):
    """The database does not answer."""

    code = "database_away"


class StoreFull(Unavailable):
    """No room is left on the disk, or it cannot be written: somebody must make room first."""

    status = 507
    code = "storage_full"
    retry_after = 300  # s


class InvalidTransition(DomainError):
    """The object is not in a state that allows this step."""

    code = "invalid_transition"


class StaleData(DomainError):
    """Someone changed the object since the caller read it. `changes` maps field to (theirs, now); `on` is the object,
    `happened` the entries of its trail that the caller has not seen, newest first (see core.stale)."""

    code = "stale"

    def __init__(
        self,
        message: Message | None = None,
        *,
        changes: dict[str, tuple[str, str]] | None = None,
        on: object = None,
        happened: Sequence[object] = (),
    ) -> None:
        super().__init__(message or msg("This was changed since you opened it."))
        self.changes = changes or {}
        self.on = on
        self.happened = happened


class NotPermitted(DomainError):
    """The user may not do this. The refusal is recorded on `on`, the object it was about."""

    status = 403
    code = "not_permitted"

    def __init__(self, message: Message | None = None, *, on: object = None) -> None:
        super().__init__(message or msg("You may not do this."))
        self.on = on


class InputError(DomainError, ValueError):
    """A value is outside what can be used. Names the field, the value and the limit; nothing is clamped."""

    status = 422
    code = "invalid_input"

    def __init__(
        self, field: str, message: Message, *, value: object = None, limit: object = None
    ) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.limit = limit


def require_at_least(field: str, value: float, limit: float, *, unit: str = "") -> None:
    """Raise :class:`InputError` unless `value` is a number >= `limit`."""
    if not value >= limit:  # also refuses NaN
        raise InputError(
            field,
            msg(
                "%(field)s is %(value)s %(unit)s; it must be at least %(limit)s %(unit)s",
                field=field,
                value=value,
                limit=limit,
                unit=unit,
            )
            if unit
            else msg(
                "%(field)s is %(value)s; it must be at least %(limit)s",
                field=field,
                value=value,
                limit=limit,
            ),
            value=value,
            limit=limit,
        )


def out_of_range(
    field: str, value: float, low: float, high: float, *, shown: str | float | None = None
) -> InputError:
    """The error of a `value` outside [low, high]; `shown`: as it is written where it is too long to be said."""
    said = value if shown is None else shown
    text = msg(
        "%(field)s is %(value)s; it must be between %(low)s and %(high)s",
        field=field,
        value=said,
        low=low,
        high=high,
    )
    return InputError(field, text, value=said, limit=low if not value >= low else high)


def require_between(field: str, value: float, low: float, high: float) -> None:
    """Raise :class:`InputError` unless `value` is a number within [low, high]."""
    if not low <= value <= high:  # also refuses NaN
        raise out_of_range(field, value, low, high)
