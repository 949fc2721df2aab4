"""Which clauses the library offers, and the papers that print them."""

from __future__ import annotations

from procurement.models import Clause, Rfq, RfqDocument


def current_clauses(*, retired: bool = False) -> dict[str, Clause]:
    """Code → its newest version, without those taken out of use unless `retired`; in the order they were added."""
    newest: dict[str, Clause] = {}
    for clause in Clause.objects.select_related("made_by").order_by("pk"):
        newest[clause.code] = clause
    return {code: clause for code, clause in newest.items() if retired or clause.in_use}


def versions_of(code: str) -> list[Clause]:
    """Every version of one clause, newest first."""
    return list(Clause.objects.filter(code=code).select_related("made_by").order_by("-version"))


def newest_documents(rfq: Rfq) -> list[RfqDocument]:
    """The newest revision of an issued RFQ's document in each language."""
    found: dict[str, RfqDocument] = {}
    for row in rfq.documents.select_related("file"):
        found.setdefault(row.language, row)
    return list(found.values())
