"""The demo's clock: for as long as a block runs, Django's clock stands at a moment of the past.

The services ask `django.utils.timezone.now` for the time, directly or as the default of a field, which holds the
function itself. Both read the name `datetime` in that module, so that is what stands still here. The process must do
nothing else meanwhile: that holds for a management command, and for nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any, ClassVar

from django.utils import timezone


class _AnyMoment(type):
    """`isinstance` answers as for the real class."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, datetime)


class _StandingStill(metaclass=_AnyMoment):
    moment: ClassVar[datetime]

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return cls.moment.astimezone(tz) if tz else cls.moment.replace(tzinfo=None)


@contextlib.contextmanager
def standing_at(moment: datetime) -> Iterator[None]:
    """Everything that asks Django for the time is told `moment`, which is aware and not ahead."""
    kept = timezone.datetime  # type: ignore[attr-defined]
    _StandingStill.moment = moment
    timezone.datetime = _StandingStill  # type: ignore[assignment, attr-defined]
    try:
        yield
    finally:
        timezone.datetime = kept  # type: ignore[attr-defined]
