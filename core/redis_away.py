"""What this process knows of Redis: whoever finds that it does not answer spares all others the same time-out.

Cache, queue, probes and pages share one memory, and each outage is one line in the log, not one a call.
"""

from __future__ import annotations

import time

import redis
import structlog
from django.conf import settings

log = structlog.get_logger(__name__)

# After a failure Redis is left alone for this long; after an answer it counts as there for as long. [s]
PAUSE = 5.0
TIMEOUT = 2  # [s]
_away_until = float("-inf")  # on the monotonic clock
_there_until = float("-inf")


def is_away() -> bool:
    """Whether Redis failed somebody within the last seconds. Asks nobody."""
    return time.monotonic() < _away_until


def note_failure(call: str, error: Exception) -> None:
    """Remember for all that Redis failed `call`; logged when it was not known yet."""
    global _away_until, _there_until
    was_known = is_away()
    _away_until, _there_until = time.monotonic() + PAUSE, float("-inf")
    if not was_known:
        log.warning("redis.away", call=call, error=str(error))


def answers() -> bool:
    """Whether Redis answers, asked anew after some seconds: a list of jobs asks once per row."""
    if is_away():
        return False
    return time.monotonic() < _there_until or probe() is None


def probe() -> redis.RedisError | None:
    """Ask now: None, or what went wrong. An answer ends what was remembered of a failure."""
    global _away_until, _there_until
    try:
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
        )
        client.ping()
        client.close()
    except redis.RedisError as error:
        note_failure("ping", error)
        return error
    _away_until, _there_until = float("-inf"), time.monotonic() + PAUSE
    return None


def forget() -> None:
    """Know nothing, as a fresh process."""
    global _away_until, _there_until
    _away_until = _there_until = float("-inf")
