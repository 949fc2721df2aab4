"""Load the clause library that comes with the product."""

from typing import Any

from django.core.management.base import BaseCommand

from procurement.services.clauses import load_clauses


class Command(BaseCommand):
    help = "Load the clauses for RFQs. Clauses that are there are left alone."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{load_clauses()} clauses loaded")
