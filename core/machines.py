"""State machines as data: the code asks the table, a test walks it, a document prints it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """`action` leads from one of `sources` to one of `targets` (none: the state stays), when one of `actors` does it.

    Guards and effects are told in words here and held by the service that bears the action's name.
    """

    action: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    actors: tuple[str, ...]
    guard: str = ""
    effect: str = ""


def transitions(rules: Iterable[Rule]) -> dict[str, set[str]]:
    """State → states that some rule leads to, as `core.transitions.advance` wants it."""
    table: dict[str, set[str]] = {}
    for rule in rules:
        for source in rule.sources:
            for target in rule.targets:
                if target != source:
                    table.setdefault(str(source), set()).add(str(target))
    return table


def actors_for(rules: Iterable[Rule], action: str, state: str) -> frozenset[str]:
    """Who may do `action` in `state`; empty when no one may."""
    return frozenset(
        actor
        for rule in rules
        if rule.action == action and state in rule.sources
        for actor in rule.actors
    )
