"""From which requests a request came, and which it became."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from planning.models.requests import CapacityRequest, RequestQuerySet
from planning.models.templates import Relation, RequestLink

_CAME: dict[str, Promise] = {
    Relation.COPIED: _("Copied from"),
    Relation.SPLIT: _("Split from"),
    Relation.MERGED: _("Merged from"),
    Relation.RENEWED: _("Renews"),
}


@dataclass(frozen=True, slots=True)
class OriginRow:
    """One request on the other end of a link, seen from this one."""

    label: str | Promise
    request: CapacityRequest
    relation: str
    share: Decimal | None
    became: bool  # it became `request`; else it came from it


def origins(request: CapacityRequest, readable: RequestQuerySet) -> list[OriginRow]:
    """Where `request` came from and what it became, as far as the reader may see it. Two queries."""
    came = RequestLink.objects.filter(target=request, source__in=readable).select_related("source")
    became = RequestLink.objects.filter(source=request, target__in=readable).select_related(
        "target"
    )
    return [
        *(
            OriginRow(_CAME[row.relation], row.source, row.relation, row.share, False)
            for row in came
        ),
        *(
            OriginRow(row.get_relation_display(), row.target, row.relation, row.share, True)
            for row in became
        ),
    ]
