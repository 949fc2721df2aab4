"""Load a telemetry file into a source from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.management.base import BaseCommand, CommandError

from core.errors import DomainError
from core.messages import Message
from planning.models import Ingestion, TelemetrySource
from planning.services.telemetry_load import load_file
from planning.services.telemetry_pull import pull
from planning.services.telemetry_sources import receive_file


class Command(BaseCommand):
    help = "Load FILE into a telemetry source, or ask a Prometheus source when no file is given."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", help="name of the source")
        parser.add_argument("file", nargs="?", help="path of the file")

    def handle(self, *args: Any, **options: Any) -> None:
        source = TelemetrySource.objects.filter(name=options["source"]).first()
        if source is None:
            known = ", ".join(TelemetrySource.objects.values_list("name", flat=True))
            raise CommandError(
                f"No source is called {options['source']}. There are: {known or '-'}"
            )
        try:
            row = self._load(source, options["file"])
        except (DomainError, OSError) as error:
            raise CommandError(str(error)) from error
        for problem in row.problems:
            self.stderr.write(str(Message.from_json(problem)))
        self.stdout.write(
            f"read {row.read}, refused {row.refused}, changed {row.changed}, unchanged {row.unchanged}, "
            f"too late {row.too_late}"
        )

    def _load(self, source: TelemetrySource, path: str | None) -> Ingestion:
        if path is None:
            return pull(source_id=source.pk)
        with Path(path).open("rb") as stream:
            row, is_new = receive_file(
                source_id=source.pk, upload=File(stream, name=Path(path).name), by=None
            )
        if not is_new:
            self.stdout.write("This source was given the same file before; nothing changes.")
        return load_file(ingestion_id=row.pk)
