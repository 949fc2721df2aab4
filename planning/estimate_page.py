"""An answer as a page shows it: words, figures in units, drawings' inputs. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, pgettext

from core.messages import msg
from core.templatetags.ui import percent, quantity, significant
from planning.estimate_text import figure, range_text, say
from planning.estimators.types import Band, Estimate, FleetAnswers, Latencies, Step
from planning.study.estimates import AcceleratorEstimate, Answer
from planning.study.labels import (
    FITS,
    GRADES,
    ORIGINS,
    SATURATIONS,
    count_text,
    figure_label,
    in_words,
    label,
)
from planning.study.model import config_words

PERCENTILE = "p"  # of the fleet, at which the latency target holds
COMPARED = (
    "training_time", "run_time", f"ttft_{PERCENTILE}", f"end_to_end_{PERCENTILE}", "tpot", "throughput",
    "accelerator_hours", "mfu",
)  # fmt: skip
TILES = (
    *COMPARED,
    "wall_time",
    "batch_time",
    "ttft",
    "end_to_end",
    "load",
    "concurrency",
    "max_concurrency",
    "energy",
)
MOST_COLUMNS = 4
TONES = {"fits": "good", "tight": "warn", "out_of_memory": "bad"}
IDLE, BUSY = 0.3, 0.7


@dataclass(frozen=True, slots=True)
class Shown:
    """One accelerator's estimate, ready to be drawn."""

    slug: str
    name: str
    number: str
    total: int
    fits: str
    fits_code: str
    tone: str
    parts: list[tuple[str, float]]
    part_notes: list[str]
    capacity: float
    tiles: list[dict[str, str]]
    saturations: list[dict[str, Any]]
    facts: list[tuple[str, str]]
    remedies: list[str]
    warnings: list[str]
    assumptions: list[str]
    trace: list[list[str]]
    figures: list[list[str]]
    constants: str
    grade: str
    fleet: dict[str, Any] | None  # latencies of a service at two loads


def _names(names: Sequence[str], percentile: str) -> list[str]:
    return [
        f"{name.removesuffix(PERCENTILE)}{percentile}" if name.endswith(f"_{PERCENTILE}") else name
        for name in names
    ]


def shown(found: AcceleratorEstimate, percentile: str) -> Shown:
    """One estimate in the language in force."""
    e = found.estimate
    grades = {band.grade for name, band in e.figures.items() if name in _tiles(e, percentile)}
    return Shown(
        slug=found.accelerator.slug,
        name=found.accelerator.name,
        number=say(count_text(found.replicas, found.per_replica)),
        total=e.accelerators,
        fits=say(FITS[e.fits]),
        fits_code=e.fits,
        tone=TONES[e.fits],
        parts=[(say(label(part.name)), part.value) for part in e.memory],
        part_notes=[f"{say(label(p.name))}: {say(p.note)}" for p in e.memory if p.note],
        capacity=e.capacity_bytes,
        tiles=[_tile(name, e.figures[name], e.figures) for name in _tiles(e, percentile)],
        saturations=_saturations(found),
        facts=[(say(label(name)), str(value)) for name, value in e.layout.items()],
        remedies=[say(text) for text in e.remedies],
        warnings=[say(text) for text in e.warnings],
        assumptions=[say(in_words(text)) for text in e.assumptions],
        trace=[_line(step) for step in e.trace],
        figures=[_row(name, band, e.figures) for name, band in e.figures.items()],
        constants=e.constants_version,
        grade=say(GRADES[next(iter(grades))])
        if len(grades) == 1
        else gettext("as said at each figure"),
        fleet=None if e.fleet is None else _fleet(e.fleet),
    )


def _fleet(answers: FleetAnswers) -> dict[str, Any]:
    """Latency by percentile: a row for each figure and load, from the average of the day to full capacity."""
    planned, off = answers.planned, answers.with_model_error
    loads = [(gettext("peak load"), planned), (gettext("peak load and model error"), off)]
    if answers.average is not None and answers.average.load < planned.load:
        loads.insert(0, (gettext("average load"), answers.average))
    if answers.full is not None:
        loads.append((gettext("full capacity"), answers.full))
    columns = [(gettext("Figure"), ""), *((p, "num") for p in planned.end_to_end)]
    rows = [
        [
            gettext("%(figure)s, %(at)s (%(load)s)")
            % {
                "figure": say(_OF_LOADS.get(name) or label(name)),
                "at": at,
                "load": percent(one.load),
            },
            *_by_percentile(one, name),
        ]
        for name in ("wait", "ttft", "tpot", "end_to_end")
        for at, one in loads
        if _by_percentile(one, name)
    ]
    return {"columns": columns, "rows": rows, "error": percent(answers.model_error)}


_OF_LOADS = {"tpot": msg("Mean time per output token")}


def _by_percentile(at: Latencies, name: str) -> list[str]:
    """A latency's percentiles; of the time per output token there is a mean and none, so that one cell holds it."""
    if name != "tpot":
        found: Mapping[str, float] = getattr(at, name)
        return [figure(seconds, "s") for seconds in found.values()]
    if at.tpot is None:
        return []
    return [figure(at.tpot, "s"), *("–" for _p in list(at.end_to_end)[1:])]


def _tiles(e: Estimate, percentile: str) -> list[str]:
    """The figures that stand in tiles."""
    return [name for name in _names(TILES, percentile) if _has_tile(name, e.figures)]


def _has_tile(name: str, figures: Mapping[str, Band]) -> bool:
    """A latency of one replica gives way to that of the whole fleet."""
    of_fleet = any(other.startswith(f"{name}_p") for other in figures) and name in (
        "ttft",
        "end_to_end",
    )
    return name in figures and not of_fleet


def _tile(name: str, band: Band, figures: Collection[str]) -> dict[str, str]:
    return {
        "label": say(figure_label(name, figures)),
        "value": figure(band.p50, band.unit),
        "within": range_text(band),
        "note": say(GRADES[band.grade]),
    }


def _row(name: str, band: Band, of: Collection[str]) -> list[str]:
    figures = [figure(value, band.unit) for value in (band.p10, band.p50, band.p90)]
    return [say(figure_label(name, of)), *figures, say(GRADES[band.grade])]


def _saturations(found: AcceleratorEstimate) -> list[dict[str, Any]]:
    if found.saturation is None:
        return []
    items = []
    for name, text in SATURATIONS.items():
        share = getattr(found.saturation, name)
        note, tone = "", ""
        if share < IDLE:
            note, tone = gettext("mostly idle"), "warn"
        elif share >= BUSY:
            tone = "good"
        items.append({"label": say(text), "value": share, "note": note, "tone": tone})
    return items


def _line(step: Step) -> list[str]:
    inputs = ", ".join(f"{name} = {_input(value)}" for name, value in step.inputs.items())
    unit = "" if step.unit == "1" else step.unit
    result = figure(step.result, unit) if unit else significant(step.result)
    return [say(label(step.name)), step.formula, inputs, result]


def _input(value: float | str) -> str:
    if isinstance(value, str):
        return value
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return significant(value, 4)
    return quantity(value)


def comparison(answer: Answer) -> dict[str, Any]:
    """Columns and rows of the table over accelerators."""
    order = _names(COMPARED, answer.request.constraints.latency_percentile)
    names = [n for n in order if any(n in e.estimate.figures for e in answer.estimates)]
    names = names[:MOST_COLUMNS]
    rows = []
    for found in answer.estimates:
        e = found.estimate
        memory = quantity(e.memory_bytes.p50, "B") if e.memory else "–"
        cells = []
        for name in names:
            band = e.figures.get(name)
            cells.append(None if band is None else _tile(name, band, e.figures))
        rows.append(
            {
                "slug": found.accelerator.slug,
                "name": found.accelerator.name,
                "number": e.accelerators,
                "split": f"{found.replicas} × {found.per_replica}",
                "memory": memory,
                "capacity": quantity(e.capacity_bytes, "B"),
                "fits": say(FITS[e.fits]),
                "tone": TONES[e.fits],
                "cells": cells,
            }
        )
    of = answer.estimates[0].estimate.figures if answer.estimates else {}
    return {"heads": [say(figure_label(name, of)) for name in names], "rows": rows}


def answer_context(answer: Answer, *, show: str = "") -> dict[str, Any]:
    """What the result's template takes: a comparison, and everything about the accelerator `show` (or the first)."""
    chosen = next((e for e in answer.estimates if e.accelerator.slug == show), answer.estimates[0])
    return {
        "comparison": comparison(answer),
        "one": shown(chosen, answer.request.constraints.latency_percentile),
        "refused": [(refused.accelerator, say(refused.reason)) for refused in answer.refused],
        "notes": [say(note) for note in answer.notes],
        "understood": say(config_words(answer.request.workload["config"]))
        if "config" in answer.request.workload
        else "",
        "catalogue": say(ORIGINS[answer.catalogue]),
        "as_of": answer.catalogue_as_of,
        "trace_columns": [
            (gettext("Step"), ""),
            (gettext("Formula"), ""),
            (gettext("Inputs"), ""),
            (gettext("Result"), "num"),
        ],
        "figure_columns": [
            (gettext("Figure"), ""),
            ("P10", "num"),
            ("P50", "num"),
            ("P90", "num"),
            (pgettext("of evidence", "Grade"), ""),
        ],
    }
