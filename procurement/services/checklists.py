"""The shipped checklists: loaded as versions, never changed once they are there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from django.db import transaction
from django.db.models import F, Q

from core.errors import DomainError
from core.messages import msg
from procurement.models import ChecklistItem, ChecklistTemplate, PurchaseOrder

CHECKLISTS = Path(__file__).parent.parent / "data" / "checklists.json"


@transaction.atomic
def load_checklists(path: Path = CHECKLISTS) -> int:
    """Load the shipped checklist templates. A version that is there is left alone; returns how many are new."""
    made = 0
    for entry in json.loads(path.read_text(encoding="utf-8")):
        items = entry.pop("items")
        template, created = ChecklistTemplate.objects.get_or_create(
            slug=entry.pop("slug"), version=entry.pop("version"), order=None, defaults=entry
        )
        if created:
            ChecklistItem.objects.bulk_create(
                ChecklistItem(template=template, position=position, **item)
                for position, item in enumerate(items, 1)
            )
            made += 1
    return made


def standing_checklists(
    kinds: Iterable[str], order: PurchaseOrder | None = None
) -> dict[str, ChecklistTemplate]:
    """What units of these kinds are held to, by kind: the newest of the contract's, else the newest shipped one."""
    rows = (
        ChecklistTemplate.objects.filter(asset_kind__in=list(kinds))
        .filter(Q(order=None) if order is None else Q(order=None) | Q(order=order))
        .select_related("base", "made_by")
        .prefetch_related("items", "base__items")
        .order_by(F("order").asc(nulls_first=True), "version")
    )
    return {row.asset_kind: row for row in rows}


def template_for(kind: str, order: PurchaseOrder | None = None) -> ChecklistTemplate:
    """The contract's checklist for a kind of unit, else the newest shipped one; on first use those are loaded.

    Raises DomainError.
    """
    found = standing_checklists([kind], order).get(kind)
    if found is None and load_checklists():
        found = standing_checklists([kind], order).get(kind)
    if found is None:
        raise DomainError(
            msg("No checklist is loaded for units of this kind. Run: manage.py load_checklists")
        )
    return found
