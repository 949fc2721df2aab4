"""The shipped checklists: loaded as versions, never changed once they are there."""

from __future__ import annotations

import json
from pathlib import Path

from django.db import transaction

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


def template_for(kind: str, order: PurchaseOrder | None = None) -> ChecklistTemplate:
    """The contract's checklist for a kind of unit, else the newest shipped one; on first use those are loaded.

    Raises DomainError.
    """
    if order is not None:
        own = order.checklists.filter(asset_kind=kind).order_by("-version").first()
        if own is not None:
            return own
    rows = ChecklistTemplate.objects.filter(asset_kind=kind, order=None).order_by("-version")
    found = rows.first()
    if found is None and load_checklists():
        found = rows.first()
    if found is None:
        raise DomainError(
            msg("No checklist is loaded for units of this kind. Run: manage.py load_checklists")
        )
    return found
