"""The cache when Redis is away: pages and limits go on with a small memory of each process (core/redis_away.py).

A cache may forget at any time, so nothing is lost. Limits on log-ins and on API calls count within each process until
Redis is back: looser than shared counting, but neither a locked door nor none at all.
"""

from __future__ import annotations

from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

from core import redis_away


class SteadyRedisCache(RedisCache):
    """Django's Redis cache; while Redis does not answer, a local one takes its place and no error leaves it."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        local = {key: value for key, value in params.items() if key != "OPTIONS"}
        self._local = LocMemCache("steady", local)

    def _either(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if not redis_away.is_away():
            try:
                return getattr(super(), name)(*args, **kwargs)
            except RedisError as error:
                redis_away.note_failure(f"cache.{name}", error)
        return getattr(self._local, name)(*args, **kwargs)

    def add(self, *args: Any, **kwargs: Any) -> bool:
        return bool(self._either("add", *args, **kwargs))

    def get(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("get", *args, **kwargs)

    def set(self, *args: Any, **kwargs: Any) -> None:
        self._either("set", *args, **kwargs)

    def touch(self, *args: Any, **kwargs: Any) -> bool:
        return bool(self._either("touch", *args, **kwargs))

    def delete(self, *args: Any, **kwargs: Any) -> bool:
        return bool(self._either("delete", *args, **kwargs))

    def get_many(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("get_many", *args, **kwargs)

    def has_key(self, *args: Any, **kwargs: Any) -> bool:
        return bool(self._either("has_key", *args, **kwargs))

    def incr(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("incr", *args, **kwargs)

    def set_many(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("set_many", *args, **kwargs)

    def delete_many(self, *args: Any, **kwargs: Any) -> None:
        self._either("delete_many", *args, **kwargs)

    def clear(self) -> None:
        self._either("clear")
