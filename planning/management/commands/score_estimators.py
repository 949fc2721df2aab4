"""``manage.py score_estimators FILE [--json]``: hold the estimators against published measurements."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from planning.estimators import scoring_inference, scoring_training
from planning.reference import resolve_accelerator, resolve_architecture

_INFERENCE_FIGURES = frozenset(
    "output_tokens_per_s output_tokens_per_s_derived ttft_ms tpot_ms requests_per_s".split()
)


class Command(BaseCommand):
    help = "Score the estimators on a truth file of inference or training measurements."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", type=Path, help="JSON: a list of rows, or an object with `rows`"
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        result = score_rows(read_rows(options["file"]))
        if options["json"]:
            self.stdout.write(json.dumps(result, indent=2, sort_keys=True))
        else:
            self.stdout.write(as_table(result))


def read_rows(path: Path) -> list[Any]:
    """The rows of a truth file. Raises CommandError where it is not readable as one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(_("%(path)s cannot be read") % {"path": path}) from error
    except ValueError as error:
        raise CommandError(_("%(path)s is not JSON") % {"path": path}) from error
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise CommandError(_("%(path)s holds no list of rows") % {"path": path})
    return rows


def score_rows(rows: Sequence[Any]) -> dict[str, Any]:
    """Classes, skipped and unpredicted counts of the rows; inference and training rows may be mixed."""
    inference = [row for row in rows if isinstance(row, Mapping) and is_inference(row)]
    training = [row for row in rows if isinstance(row, Mapping) and not is_inference(row)]
    merged: dict[str, Any] = {"classes": {}, "skipped": {}, "unpredicted": {}}
    if inference:
        _merge(
            merged, scoring_inference.score(inference, resolve_accelerator, resolve_architecture)
        )
    if training:
        _merge(merged, scoring_training.score(training, resolve_accelerator))
    odd = len(rows) - len(inference) - len(training)
    if odd:
        merged["skipped"]["not a row"] = odd
    return merged


def is_inference(row: Mapping[str, Any]) -> bool:
    """Whether a row measures inference: by its class, or by what was measured."""
    if "row_class" in row:
        return True
    measured = row.get("measured")
    return isinstance(measured, Mapping) and bool(_INFERENCE_FIGURES & set(measured))


def _merge(into: dict[str, Any], part: Mapping[str, Any]) -> None:
    into["classes"].update(part["classes"])
    for key in ("skipped", "unpredicted"):
        for reason, count in part.get(key, {}).items():
            into[key][reason] = into[key].get(reason, 0) + count


def as_table(result: Mapping[str, Any]) -> str:
    """The same as aligned text."""
    head = f"{'class':38}{'rows':>7}{'unpredicted':>13}{'median APE':>12}{'P90 APE':>10}{'coverage':>10}"
    lines = [head]
    for name, found in result["classes"].items():
        cells = [_percent(found.get(key)) for key in ("median_ape", "p90_ape", "coverage")]
        lines.append(
            f"{name:38}{found['rows']:>7}{found['unpredicted']:>13}{cells[0]:>12}{cells[1]:>10}{cells[2]:>10}"
        )
    for key in ("skipped", "unpredicted"):
        lines += [f"{key}: {count} {reason}" for reason, count in result[key].items()]
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} %"
