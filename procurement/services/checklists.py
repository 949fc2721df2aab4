"""The shipped checklists: loaded as versions, never changed once they are there."""

from __future__ import annotations

import json
from pathlib import Path

from django.db import transaction

from core.errors import DomainError
from core.messages import msg
from procurement.models import ChecklistItem, ChecklistTemplate

CHECKLISTS = Path(__file__).parent.parent / "data" / "checklists.json"


@transaction.atomic
def load_checklists(path: Path = CHECKLISTS) -> int:
    """Load the shipped checklist templates. A version that is there is left alone; returns how many are new."""
    made = 0
    for entry in json.loads(path.read_text(encoding="utf-8")):
        items = entry.pop("items")
        template, created = ChecklistTemplate.objects.get_or_create(
            slug=entry.pop("slug"), version=entry.pop("version"), defaults=entry
        )
        if created:
            ChecklistItem.objects.bulk_create(
                ChecklistItem(template=template, position=position, **item)
                for position, item in enumerate(items, 1)
            )
            made += 1
    return made


def template_for(kind: str) -> ChecklistTemplate:
    """The newest checklist for a kind of unit; on first use the shipped ones are loaded. Raises DomainError."""
    rows = ChecklistTemplate.objects.filter(asset_kind=kind).order_by("-version")
    found = rows.first()
    if found is None and load_checklists():
        found = rows.first()
    if found is None:
        raise DomainError(
            msg("No checklist is loaded for units of this kind. Run: manage.py load_checklists")
        )
    return found
