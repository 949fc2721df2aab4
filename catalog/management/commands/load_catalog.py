"""`manage.py load_catalog`: bring the catalogue up to the shipped facts."""

from typing import Any

from django.core.management.base import BaseCommand

from catalog.services.loading import load_reference


class Command(BaseCommand):
    """Safe to repeat: a second run changes nothing and says so."""

    help = "Load accelerators, models, offers, platforms, cost defaults and exchange rates from the shipped files."

    def handle(self, *args: Any, **options: Any) -> None:
        report = load_reference()
        nouns = sorted({*report.added, *report.revised, *report.unchanged})
        for noun in nouns:
            self.stdout.write(
                f"{noun}: {report.added[noun]} added, {report.revised[noun]} revised, "
                f"{report.unchanged[noun]} unchanged"
            )
        for message in (*report.cautions, *report.dropped):
            self.stdout.write(f"  {message}")
        self.stdout.write(
            self.style.SUCCESS(f"{report.changed} rows changed, {len(report.dropped)} left out.")
        )
