"""Read evidence files and print what they prove; needs no database."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from core.errors import InputError
from procurement.evidence.command import add_arguments, run


class Command(BaseCommand):
    help = "Read burn-in and acceptance evidence: verdict, devices, reasons with their place in the file."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        out: OutputWrapper = self.stdout
        try:
            run(options["files"], as_json=options["json"], context_file=options["context"], out=out)
        except (OSError, InputError, ValueError) as error:
            raise CommandError(str(error)) from error
