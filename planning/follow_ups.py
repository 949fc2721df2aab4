"""What a decision of a review can become, and what it became. Apps above register what they file from one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from django.utils.functional import Promise

from core.models import User


@dataclass(frozen=True, slots=True)
class Became:
    """One thing that was filed from a decision."""

    kind: str
    reference: str
    state: str
    state_label: str | Promise
    url: str = ""  # empty: the reader may not open it


# By the decision's id; `user` sees only what the thing's own rules show, None is the product itself, freezing figures.
Found = Callable[[Collection[int], User | None], Mapping[int, Sequence[Became]]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A way on from a decision. The permission is that of what is filed."""

    name: str
    label: str | Promise  # of the button
    address: str  # URL name: GET is the form with what is known, POST files
    may: Callable[[User], bool]
    found: Found
    state_label: Callable[[str], str | Promise]
    at_once: Callable[[], bool] = lambda: True  # False: the form is looked at before it is sent


_kinds: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Offer `kind` on decisions; the same name again replaces it."""
    _kinds[kind.name] = kind


def kinds_for(user: User) -> list[Kind]:
    """What `user` may file from a decision at all."""
    return [kind for kind in _kinds.values() if kind.may(user)]


def became(actions: Collection[int], user: User | None) -> dict[int, list[Became]]:
    """Everything that was filed from these decisions, in a constant number of queries."""
    rows: dict[int, list[Became]] = defaultdict(list)
    for kind in _kinds.values() if actions else ():
        for pk, found in kind.found(actions, user).items():
            rows[pk].extend(found)
    return rows


def state_words(kind: str, state: str) -> str:
    """A frozen state in the reader's language; a kind that is gone keeps its code."""
    return str(_kinds[kind].state_label(state)) if kind in _kinds else state
