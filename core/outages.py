"""What an error of the database or the disk means to the person who waits: busy, away, or full.

The database's drivers tell these apart in words only, so the words are kept here, in one place for pages, the API,
background jobs and /readyz.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from django.db import DatabaseError, InterfaceError, OperationalError

from core.errors import StoreAway, StoreBusy, StoreFull, Unavailable
from core.messages import msg

BUSY = ("locked", "deadlock", "lock timeout", "could not obtain lock")
# SQLite: 13 (full), 8 (read-only), 10 (write or shared memory failed), 14 (the log beside it could not be made);
# PostgreSQL: 53100 (disk_full) and what its file layer says.
FULL = (
    "disk is full", "disk i/o error", "readonly database", "unable to open database file",
    "no space left", "could not extend file", "could not write",
)  # fmt: skip
AWAY = (
    "connection refused", "could not connect", "connection failed", "connection to server",
    "connection already closed", "connection is closed", "the connection is lost", "server closed the connection",
    "terminating connection", "starting up", "shutting down", "too many clients", "timeout expired",
    "could not translate host name", "no route to host",
)  # fmt: skip
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def behind(error: BaseException | None) -> Unavailable | None:
    """The refusal that stands for `error`, found in it or in what caused it. None for any other error."""
    for cause in _chain(error):
        if isinstance(cause, Unavailable):
            return cause
        if isinstance(cause, OSError) and cause.errno in NO_ROOM:
            return full()
        if isinstance(cause, OperationalError | InterfaceError) or (
            isinstance(cause, DatabaseError) and "no space left" in str(cause).lower()
        ):
            return _of_database(str(cause).lower())
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _of_database(text: str) -> Unavailable | None:
    if any(word in text for word in BUSY):
        return StoreBusy(
            msg(
                "The data is being written by somebody else. Nothing was saved; try again in a moment."
            )
        )
    if any(word in text for word in FULL):
        return full()
    if any(word in text for word in AWAY):
        return StoreAway(
            msg("The database does not answer. Nothing was saved; try again in a minute.")
        )
    return None


def full() -> StoreFull:
    """No room left."""
    return StoreFull(
        msg(
            "The disk of this installation is full or cannot be written. Nothing of this step was saved; what was "
            "saved before is still there. Tell who runs the installation to make room, then try again."
        )
    )
