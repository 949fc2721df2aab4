"""Beat's schedule in the database: the product's own entries from config/celery.py, beside those that people set."""

from __future__ import annotations

from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

OWN = "headroom."  # before the name of every entry of the product


class ProductScheduler(DatabaseScheduler):  # type: ignore[misc]
    """Writes the product's entries under names of their own, and takes away those that a new version no longer has.

    Entries of other names, such as those of review schedules, are never touched. Two schedulers that start at once
    write the same rows; every task checks the database before it acts.
    """

    def setup_schedule(self) -> None:
        entries = own_entries(self.app.conf.beat_schedule)
        gone = PeriodicTask.objects.filter(name__startswith=OWN).exclude(name__in=entries)
        for row in gone:
            row.delete()
        self.update_from_dict(entries)


def own_entries(schedule: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    """The schedule of config/celery.py by its names in the database."""
    return {f"{OWN}{name}": entry for name, entry in schedule.items()}
