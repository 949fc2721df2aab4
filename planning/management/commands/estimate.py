"""Estimate a workload: a request as JSON on standard input, the estimate as a table or as JSON."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.errors import DomainError, InputError
from core.messages import msg
from core.strict_json import JSONProblem, read_json
from planning.estimate_text import answer_lines
from planning.services.estimates import estimate_request
from planning.study.answer_json import answer_json, error_json

SHOWN = 5  # of a whole catalogue
LARGEST_INPUT = 1_000_000  # characters


class Command(BaseCommand):
    help = (
        "Estimate memory, time and number of accelerators of a workload (docs/estimate-schema.md)."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
        parser.add_argument(
            "--limit", type=int, default=SHOWN, help="how many to show when no accelerator is named"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            answer = estimate_request(read_request())
        except DomainError as error:
            self.stdout.write(json.dumps(error_json(error), ensure_ascii=False, indent=1))
            sys.exit(2)
        limit = max(options["limit"], 1) if answer.searched else len(answer.estimates)
        if options["json"]:
            body = answer_json(answer, limit=limit)
            self.stdout.write(json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False))
        else:
            for line in answer_lines(answer, limit):
                self.stdout.write(line)


def read_request() -> Any:
    try:
        text = sys.stdin.read(LARGEST_INPUT + 1)
    except UnicodeDecodeError:
        raise InputError("request", msg("The request is not UTF-8 text"), limit="UTF-8") from None
    if len(text) > LARGEST_INPUT:
        raise InputError(
            "request",
            msg("%(field)s is longer than %(limit)s characters", field="request", limit=LARGEST_INPUT),
            limit=LARGEST_INPUT,
        )  # fmt: skip
    try:
        return read_json(text)
    except JSONProblem as problem:
        raise problem.named("request") from None
