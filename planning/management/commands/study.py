"""Study a workload: a request as JSON on standard input; plans, frontier and exclusions as a table or as JSON."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError, ProgrammingError

from core.errors import DomainError
from core.organisation import NotSetUp, organisation, today
from planning.management.commands.estimate import read_request
from planning.places import country_of_zone
from planning.services import snapshots, studies
from planning.services.purchase_tax import purchase_tax, tax_of
from planning.study.answer_json import error_json
from planning.study.request import parse_request
from planning.study.search.purchase_tax import PurchaseTax, usual_tax
from planning.study.search.run import Setting, run_study
from planning.study.search.say import said
from planning.study_text import result_lines


class Command(BaseCommand):
    help = (
        "Study a workload: every accelerator, layout and way to pay, ranked (docs/study-schema.md)."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
        parser.add_argument("--seed", type=int, default=0, help="of the scenarios (default 0)")
        parser.add_argument(
            "--country", default="", help="ISO code: where data stays and bought servers stand"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = _study(options["seed"], options["country"].upper())
        except DomainError as error:
            self.stdout.write(json.dumps(error_json(error), ensure_ascii=False, indent=1))
            sys.exit(2)
        if options["json"]:
            text = json.dumps(said(result), ensure_ascii=False, indent=1, allow_nan=False)
            self.stdout.write(text)
            return
        for line in result_lines(result):
            self.stdout.write(line)


def _study(seed: int, country: str) -> dict[str, Any]:
    request = parse_request(read_request())
    try:
        org = organisation()
        day, currency, home = today(org), org.currency, country_of_zone(org.time_zone)
        tax = purchase_tax() if not country else None
    except (NotSetUp, OperationalError, ProgrammingError):  # no database, or an empty one
        day, currency, home = datetime.now(UTC).date(), "USD", "US"
        tax = None
    told = request.constraints.currency
    if told is not None:
        currency = told
        home = {"CNY": "CN"}.get(told, home)
    land = country or home
    setting = Setting(currency=currency, seed=seed, country=land, tax=tax or _usual(land))
    inputs = studies.prepare(request, snapshots.snapshot(day), setting)
    return run_study(inputs.request, inputs.known, inputs.snapshot, inputs.setting)


def _usual(country: str) -> PurchaseTax | None:
    """The country's usual tax, by the catalogue's cost defaults where there is one."""
    try:
        return tax_of(country)
    except (OperationalError, ProgrammingError):
        return usual_tax(country)
