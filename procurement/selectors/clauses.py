"""Which clauses the library offers."""

from __future__ import annotations

from procurement.models import Clause


def current_clauses(*, retired: bool = False) -> dict[str, Clause]:
    """Code → its newest version, without those taken out of use unless `retired`; in the order they were added."""
    newest: dict[str, Clause] = {}
    for clause in Clause.objects.select_related("made_by").order_by("pk"):
        newest[clause.code] = clause
    return {code: clause for code, clause in newest.items() if retired or clause.in_use}


def versions_of(code: str) -> list[Clause]:
    """Every version of one clause, newest first."""
    return list(Clause.objects.filter(code=code).select_related("made_by").order_by("-version"))
