"""Calls at the same instant, each on a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connection

from core.errors import DomainError


def together(*calls: Callable[[], object]) -> list[str]:
    """Run all at the same instant, each on its own connection. `ok`, or the code of the refusal."""
    gate = threading.Barrier(len(calls))
    results = [""] * len(calls)

    def run(index: int, call: Callable[[], object]) -> None:
        connection.ensure_connection()
        gate.wait()
        results[index] = outcome(call)

    threads = [threading.Thread(target=run, args=(index, call)) for index, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def outcome(call: Callable[[], object]) -> str:
    """`ok`, or the code of the refusal; on a connection of its own."""
    try:
        call()
    except DomainError as error:
        return error.code
    finally:
        connection.close()
    return "ok"
