"""The clause library: shipped, extended and revised by procurement, chosen for an RFQ and copied when it is issued."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction

from core.audit import record
from core.errors import InputError, StaleData
from core.messages import msg
from core.models import User
from core.policies import require
from procurement import policies
from procurement.models import Clause, Rfq, RfqClause
from procurement.precedence import check_asks
from procurement.selectors.clauses import current_clauses

CLAUSES = Path(__file__).parent.parent / "data" / "clauses.json"
WORDS = ("title_en", "title_zh", "text_en", "text_zh")
LONGEST = {"title_en": 120, "title_zh": 120, "text_en": 4000, "text_zh": 4000}
CODE = re.compile(r"[a-z0-9][a-z0-9-]{1,59}")


@transaction.atomic
def load_clauses(path: Path = CLAUSES) -> int:
    """Add the shipped clauses that are not there yet. One that is there, revised or not, is left alone."""
    known = set(Clause.objects.values_list("code", flat=True))
    rows = [
        Clause(version=1, **entry)
        for entry in json.loads(path.read_text(encoding="utf-8"))
        if entry["code"] not in known
    ]
    Clause.objects.bulk_create(rows)
    return len(rows)


@transaction.atomic
def write_clause(
    *,
    code: str,
    by: User,
    version: int = 0,
    reason: str = "",
    in_use: bool = True,
    preset: bool = True,
    asks: dict[str, Any] | None = None,
    **words: str,
) -> Clause:
    """Add a clause (`version` 0), or a new version of one whose newest is `version`. Nothing is overwritten.

    `asks` is what it asks of the warranty as data (see `procurement.precedence`); None: as the version before.
    Raises NotPermitted, StaleData (another version was made meanwhile) or InputError.
    """
    require(policies.can_keep_clauses(by))
    if not CODE.fullmatch(code):
        raise InputError(
            "code",
            msg("%(value)s is no short name: small letters, digits and hyphens, 2 to %(limit)s", value=code[:80],
                limit=60),
            value=code, limit=60,
        )  # fmt: skip
    newest = Clause.objects.select_for_update().filter(code=code).order_by("-version").first()
    if (newest.version if newest else 0) != version:
        raise _stale(code, newest.version if newest else 0)
    values: dict[str, Any] = {name: _word(name, words.get(name)) for name in WORDS}
    values |= {"in_use": in_use, "preset": preset}
    if asks is None:
        asks = newest.asks if newest is not None else {}
    values["asks"] = check_asks(asks)
    if newest is not None and not reason.strip():
        raise InputError("reason", msg("Give a reason"), value=0, limit=1)
    try:
        with transaction.atomic():
            clause = Clause.objects.create(
                code=code, version=version + 1, reason=reason.strip()[:300], made_by=by, **values
            )
    except IntegrityError as error:  # another wrote it meanwhile: no row of it was there to lock
        raise _stale(code, version + 1) from error
    changes = {
        name: [getattr(newest, name), value]
        for name, value in values.items()
        if newest is not None and getattr(newest, name) != value
    }
    record(
        "clause.revised" if newest else "clause.added", on=clause, by=by, reason=clause.reason,
        code=code, number=clause.version, changes=changes,
    )  # fmt: skip
    return clause


def _stale(code: str, version: int) -> StaleData:
    return StaleData(
        msg("The clause %(code)s has version %(value)s by now", code=code, value=version)
    )


def _word(name: str, value: str | None) -> str:
    text, limit = (value or "").strip(), LONGEST[name]
    if not 1 <= len(text) <= limit:
        raise InputError(
            name,
            msg("%(field)s has %(value)s characters; 1 to %(limit)s are asked for", field=name, value=len(text),
                limit=limit),
            value=len(text), limit=limit,
        )  # fmt: skip
    return text


def set_clauses(rfq: Rfq, codes: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Choose the clauses of a draft, in this order; None: those that are preset. The choice before and now.

    Raises InputError naming a clause that is not in use.
    """
    library = current_clauses()
    if codes is None:
        codes = [code for code, clause in library.items() if clause.preset]
    chosen = []
    for code in dict.fromkeys(codes):
        if code not in library:
            raise InputError(
                "clauses",
                msg("There is no clause %(value)s in use; there are: %(limit)s", value=str(code)[:80],
                    limit=", ".join(library)),
                value=code, limit=", ".join(library),
            )  # fmt: skip
        chosen.append(library[code])
    before = [str(row.clause) for row in rfq.clauses.select_related("clause")]
    rfq.clauses.all().delete()
    RfqClause.objects.bulk_create(
        RfqClause(rfq=rfq, position=number, clause=clause, **_words(clause))
        for number, clause in enumerate(chosen, 1)
    )
    return before, [str(clause) for clause in chosen]


def issue_clauses(rfq: Rfq) -> list[str]:
    """Copy the words of the newest versions into an RFQ that is being issued; from then on they stand. Their names."""
    return set_clauses(rfq, [row.clause.code for row in rfq.clauses.select_related("clause")])[1]


def _words(clause: Clause) -> dict[str, Any]:
    return {name: getattr(clause, name) for name in (*WORDS, "asks")}
