"""What an error of the database or the disk means to the person who waits: busy, away, or full.

PostgreSQL tells these apart by a code, in whatever language its server speaks. SQLite, and what fails before a server
answers, tell them in words only, so the words are kept here, in one place for pages, the API and background jobs.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

import structlog
from django.db import DatabaseError, DataError, InterfaceError, OperationalError

from core.errors import StoreAway, StoreBusy, StoreFull, Unavailable
from core.messages import msg

BUSY = ("locked", "deadlock", "lock timeout", "could not obtain lock")
# SQLite: 13 (full), 8 (read-only), 10 (write or shared memory failed), 14 (the log beside it could not be made);
# PostgreSQL: what its file layer says.
FULL = (
    "disk is full", "disk i/o error", "readonly database", "unable to open database file",
    "no space left", "quota exceeded", "could not extend file", "could not write",
)  # fmt: skip
# Of these the words are PostgreSQL's own, and said with codes (an internal error, for a quota) that are no outage.
FULL_ANYWHERE = ("no space left", "quota exceeded", "could not extend file")
AWAY = (
    "connection refused", "could not connect", "connection failed", "connection to server",
    "connection already closed", "connection is closed", "the connection is lost", "server closed the connection",
    "terminating connection", "starting up", "shutting down", "too many clients", "timeout expired",
    "could not translate host name", "no route to host",
)  # fmt: skip
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
# PostgreSQL's codes (SQLSTATE, appendix A of its manual); a class of codes by its first two characters.
STATES_BUSY = ("40P01", "55P03")  # deadlock_detected, lock_not_available
STATES_FULL = ("53100",)  # disk_full
STATES_AWAY = (
    "08",
    "53300",
    "57P01",
    "57P02",
    "57P03",
)  # connection, too many, shut down, crashed, starting

log = structlog.get_logger(__name__)


def logged(error: BaseException | None) -> Unavailable | None:
    """What :func:`behind` finds, and a line in the log with the error that the refusal hides."""
    refusal = behind(error)
    if refusal is not None:
        log.error("unavailable", code=refusal.code, error=repr(error))
    return refusal


def behind(error: BaseException | None) -> Unavailable | None:
    """The refusal that stands for `error`, found in it or in what caused it. None for any other error."""
    for cause in _chain(error):
        if isinstance(cause, Unavailable):
            return cause
        if isinstance(cause, OSError) and cause.errno in NO_ROOM:
            return full()
        if isinstance(cause, DatabaseError | InterfaceError):
            found = _of_state(cause) or _of_words(cause)
            if found is not None or isinstance(cause, OperationalError | InterfaceError):
                return found
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, as a traceback would tell: `raise … from None` ends the chain."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _of_state(error: BaseException) -> Unavailable | None:
    """By the code of the driver's error, which Django keeps as the cause of its own."""
    state: str = getattr(error.__cause__, "sqlstate", None) or ""
    if state.startswith(STATES_BUSY):
        return busy()
    if state.startswith(STATES_FULL):
        return full()
    if state.startswith(STATES_AWAY):
        return away()
    return None


def _of_words(error: BaseException) -> Unavailable | None:
    text = str(error).lower()
    if not isinstance(error, OperationalError | InterfaceError):
        return full() if any(word in text for word in FULL_ANYWHERE) else None
    if any(word in text for word in BUSY):
        return busy()
    if any(word in text for word in FULL):
        return full()
    if any(word in text for word in AWAY):
        return away()
    return None


def beyond(error: BaseException) -> bool:
    """Whether a value was outside what the database holds: a date in the year 1, a number of no column, a NUL."""
    found = isinstance(error, OverflowError | DataError)
    if found:
        log.warning("beyond_what_is_kept", error=repr(error))
    return found


def busy() -> StoreBusy:
    """Somebody else holds the rows."""
    return StoreBusy(
        msg("The data is being written by somebody else. Nothing was saved; try again in a moment.")
    )


def away() -> StoreAway:
    """No answer."""
    return StoreAway(msg("The database does not answer. Nothing was saved; try again in a minute."))


def full() -> StoreFull:
    """No room left."""
    return StoreFull(
        msg(
            "The disk of this installation is full or cannot be written. Nothing of this step was saved; what was "
            "saved before is still there. Tell who runs the installation to make room, then try again."
        )
    )
