"""Load the acceptance checklists that come with the product."""

from typing import Any

from django.core.management.base import BaseCommand

from procurement.services.checklists import load_checklists


class Command(BaseCommand):
    help = "Load the acceptance checklists. Versions that are there are left alone."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{load_checklists()} checklists loaded")
