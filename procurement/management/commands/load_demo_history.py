"""A demo organisation with a past: every room of the product has something in it.

Everything is done by the services, by people who may, on a clock that goes through the last weeks (procurement/demo).
Documents are left to the worker. All of it is one transaction.
"""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from catalog.models import Accelerator
from catalog.services.loading import load_reference
from core.models import Notice, Organisation
from procurement.demo import asking, buying, fleet, quarters
from procurement.demo.stage import Stage, play
from procurement.models import ChecklistTemplate
from procurement.services.checklists import load_checklists
from procurement.services.clauses import load_clauses

STORIES = (
    quarters.begin, buying.register, quarters.rates, quarters.reviewed,
    fleet.delivered, fleet.used, fleet.learned,
    buying.on_its_way, buying.to_compare, buying.sealed, buying.approved,
    asking.refused, asking.returned, asking.waiting, asking.drafted,
)  # fmt: skip
# Older news was read in its time; what is left is told by the pages, and mailed to nobody.
NEWS = timedelta(days=8)


class Command(BaseCommand):
    help = "Load a demo organisation with the history of its last weeks into an empty installation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--if-empty", action="store_true", help="do nothing when one exists")

    def handle(self, *args: Any, **options: Any) -> None:
        if Organisation.objects.exists():
            if options["if_empty"]:
                return
            raise CommandError(
                "An organisation exists already; the demo is only for an empty installation."
            )
        load(timezone.now())


@transaction.atomic
def load(now: datetime) -> None:
    """Live through the demo's weeks up to `now`."""
    if not Accelerator.objects.exists():
        load_reference()
    if not ChecklistTemplate.objects.exists():
        load_checklists()
    load_clauses()
    play(Stage(now), STORIES)
    Notice.objects.update(mail_at=None)
    Notice.objects.filter(created_at__lt=now - NEWS).update(read_at=F("created_at"))
