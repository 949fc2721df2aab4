"""Who wants to know that prices, figures or rates changed. Apps above register a task; it runs after the commit."""

from __future__ import annotations

from core.jobs import enqueue

_tasks: list[str] = []


def listen(task: str) -> None:
    """Queue the task at dotted path `task` after each change from now on; the same one twice counts once."""
    if task not in _tasks:
        _tasks.append(task)


def tell() -> None:
    """Facts of the catalogue changed in this transaction."""
    for task in _tasks:
        enqueue(task)
