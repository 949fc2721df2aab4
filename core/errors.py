"""Errors that a user may see. Each carries a translatable message; middleware and API map them to answers."""

from __future__ import annotations

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


BUSY = ("locked", "deadlock", "lock timeout", "could not obtain lock")


class StoreBusy(DomainError):
    """Another write held the data too long. Nothing was saved; the same step may be tried again."""

    status = 503
    code = "busy"
    retry_after = 5  # s

    @classmethod
    def behind(cls, error: Exception) -> StoreBusy | None:
        """The refusal that stands for a database error about locks; None for any other error."""
        if not any(word in str(error).lower() for word in BUSY):
            return None
        return cls(
            msg(
                "The data is being written by somebody else. Nothing was saved; try again in a moment."
            )
        )


class InvalidTransition(DomainError):
    """The object is not in a state that allows this step."""

    code = "invalid_transition"


class StaleData(DomainError):
    """Someone changed the object since the caller read it. `changes` maps field to (theirs, now)."""

    code = "stale"

    def __init__(
        self,
        message: Message | None = None,
        *,
        changes: dict[str, tuple[str, str]] | None = None,
    ) -> None:
        super().__init__(message or msg("This was changed since you opened it."))
        self.changes = changes or {}


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
