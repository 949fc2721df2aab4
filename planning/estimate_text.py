"""An answer as lines of plain text, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from django.utils.translation import gettext

from core.messages import Message, msg
from core.templatetags.ui import percent, quantity, significant, span
from planning.estimators.types import Band, Step
from planning.study.estimates import AcceleratorEstimate, Answer
from planning.study.labels import (
    FITS,
    GRADES,
    ORIGINS,
    SATURATIONS,
    count_text,
    figure_label,
    label,
)

MAIN = (
    "training_time", "run_time", "ttft_p95", "end_to_end_p95", "tpot", "throughput", "accelerator_hours",
)  # fmt: skip


def say(message: Message) -> str:
    """In the language in force."""
    return message.render(gettext)


def figure(value: float, unit: str) -> str:
    """A figure in the unit a person would use."""
    if value == math.inf:
        return "∞"
    if unit == "s":
        return span(value)
    if unit in ("1", ""):
        return percent(value) if abs(value) <= 10 else significant(value)
    if unit in ("h", "kWh"):
        return f"{significant(value)} {unit}"
    return quantity(value, unit)


def range_text(band: Band) -> str:
    """`P10 – P90`, a unit of both said once; empty when the figure is exact."""
    if band.p10 == band.p90:
        return ""
    low, high = figure(band.p10, band.unit), figure(band.p90, band.unit)
    number, _, unit = low.partition(" ")
    if unit == high.partition(" ")[2] and not any(sign.isdigit() for sign in unit):
        low = number
    return f"{low} – {high}"


def band_text(band: Band) -> str:
    """`P50 (P10 – P90)`; the figure alone when it is exact."""
    middle, within = figure(band.p50, band.unit), range_text(band)
    return f"{middle} ({within})" if within else middle


def answer_lines(answer: Answer, limit: int) -> Iterator[str]:
    """A comparison, then everything about the first accelerator."""
    catalogue = say(ORIGINS[answer.catalogue])
    as_of = answer.catalogue_as_of.isoformat() if answer.catalogue_as_of else "–"
    yield say(msg("Figures from %(catalogue)s, as of %(date)s.", catalogue=catalogue, date=as_of))
    if answer.searched:
        text = msg(
            "%(shown)s of %(compared)s accelerators are shown; order: %(order)s.",
            shown=min(limit, len(answer.estimates)),
            compared=len(answer.estimates) + len(answer.refused),
            order=say(answer.ranked_by),
        )
        yield say(text)
    yield ""
    yield from _comparison(answer.estimates[:limit])
    if not answer.searched:
        for refused in answer.refused:
            yield f"{refused.accelerator}: {say(refused.reason)}"
    yield from (say(note) for note in answer.notes)
    yield ""
    yield from estimate_lines(answer.estimates[0])


def _comparison(estimates: tuple[AcceleratorEstimate, ...]) -> Iterator[str]:
    shown = [name for name in MAIN if any(name in e.estimate.figures for e in estimates)][:3]
    heads = [
        say(msg("Accelerator")),
        say(msg("Accelerators")),
        say(msg("Memory")),
        say(msg("Memory fits")),
    ]
    figures = estimates[0].estimate.figures if estimates else {}
    rows = [[*heads, *(say(figure_label(name, figures)) for name in shown)]]
    for found in estimates:
        e = found.estimate
        memory = figure(e.memory_bytes.p50, "B") if e.memory else "–"
        rows.append(
            [
                found.accelerator.name,
                say(count_text(found.replicas, found.per_replica)),
                f"{memory} / {figure(e.capacity_bytes, 'B')}",
                say(FITS[e.fits]),
                *(band_text(e.figures[name]) if name in e.figures else "–" for name in shown),
            ]
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def estimate_lines(found: AcceleratorEstimate) -> Iterator[str]:
    """Everything about one accelerator: memory, figures, saturations, what to know, and the trace."""
    e = found.estimate
    yield f"{found.accelerator.name}: {say(count_text(found.replicas, found.per_replica))}, {say(FITS[e.fits])}"
    yield from _block(
        msg("Memory of one accelerator"), [(label(p.name), figure(p.value, "B")) for p in e.memory]
    )
    figures = [
        (figure_label(name, e.figures), f"{band_text(band)}  [{say(GRADES[band.grade])}]")
        for name, band in e.figures.items()
    ]
    yield from _block(msg("Figures: P50 (P10 – P90)"), figures)
    if found.saturation is not None:
        shares = [
            (text, percent(getattr(found.saturation, name))) for name, text in SATURATIONS.items()
        ]
        yield from _block(msg("Saturation"), shares)
    yield from _block(
        msg("Layout"), [(label(name), str(value)) for name, value in e.layout.items()]
    )
    for title, texts in (
        (msg("What would make it fit"), e.remedies),
        (msg("Warnings"), e.warnings),
        (msg("Assumptions"), e.assumptions),
    ):
        if texts:
            yield f"\n{say(title)}"
            yield from (f"  - {say(text)}" for text in texts)
    if e.trace:
        yield f"\n{say(msg('Trace'))}"
        yield from (f"  {step_text(step)}" for step in e.trace)
    yield f"\n{say(msg('Constants: %(version)s', version=e.constants_version or '–'))}"


def _block(title: Message, rows: list[tuple[Message, str]]) -> Iterator[str]:
    if not rows:
        return
    yield f"\n{say(title)}"
    width = max(len(say(name)) for name, _value in rows)
    for name, value in rows:
        yield f"  {say(name).ljust(width)}  {value}"


def input_text(value: float | str) -> str:
    """An input of a step: text as it is, a number at four digits."""
    return value if isinstance(value, str) else f"{value:.4g}"


def step_text(step: Step) -> str:
    """One line of the trace: formula, inputs, result, unit."""
    inputs = ", ".join(f"{name} = {input_text(value)}" for name, value in step.inputs.items())
    return f"{say(label(step.name))} = {step.formula} = {step.result:.4g} {step.unit}   ({inputs})"
