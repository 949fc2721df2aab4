"""Which clauses the library offers, and the papers that print them."""

from __future__ import annotations

from django.utils.translation import gettext as _

from procurement.clause_words import Disagreement, disagreements
from procurement.models import Clause, PurchasingPolicy, Rfq, RfqClause, RfqDocument
from procurement.selectors.precedence import label_of


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


def word_warnings(clause: Clause | RfqClause, burn_in_hours: int | None = None) -> list[str]:
    """Where the clause's words and what it asks as data, or its two languages, tell different figures; in the language
    in force. `burn_in_hours`: the purchasing policy's, read where it is not given."""
    if burn_in_hours is None:
        burn_in_hours = PurchasingPolicy.current().burn_in_hours
    found = disagreements(clause.text_en, clause.text_zh, clause.asks, burn_in_hours=burn_in_hours)
    return [_told(one) for one in found]


def clause_rows(rfq: Rfq, hours: int | None = None) -> list[tuple[RfqClause, list[str]]]:
    """The clauses of an RFQ, each with what its words and its data do not agree on. No query where clauses were fetched
    with the RFQ and `hours`, those of the burn-in by the policy, are given."""
    if hours is None:
        hours = PurchasingPolicy.current().burn_in_hours
    fetched = "clauses" in getattr(rfq, "_prefetched_objects_cache", {})
    rows = rfq.clauses.all() if fetched else rfq.clauses.select_related("clause")
    return [(row, word_warnings(row, hours)) for row in rows]


def _told(one: Disagreement) -> str:
    words, other = ", ".join(one.words), ", ".join(one.other)
    if not one.field:
        return _("The languages differ. English: %(english)s; Chinese: %(chinese)s") % {
            "english": words or "–",
            "chinese": other or "–",
        }
    if one.field == "burn_in_hours":
        label = _("Burn-in by the purchasing policy (hours)")
    else:
        label = label_of(one.field)
    facts = {"words": words, "term": label, "asked": one.asked}
    if one.language == "en":
        return (
            _("English words: %(words)s. As data: %(term)s %(asked)s") % facts
            if words
            else _("The English words do not name what is asked as data: %(term)s %(asked)s")
            % facts
        )
    return (
        _("Chinese words: %(words)s. As data: %(term)s %(asked)s") % facts
        if words
        else _("The Chinese words do not name what is asked as data: %(term)s %(asked)s") % facts
    )
