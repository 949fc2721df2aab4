"""An answer as JSON: the documented, versioned form that the command and the API share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.errors import DomainError, InputError
from core.messages import Message, shown
from planning.estimators.types import (
    Accelerator,
    Band,
    Estimate,
    FleetAnswers,
    Latencies,
    Step,
)
from planning.study.estimates import AcceleratorEstimate, Answer
from planning.study.fields import WorkloadErrors
from planning.study.request import SCHEMA, request_json

Say = Callable[[Message], Any]  # text, or the message itself as JSON


def answer_json(answer: Answer, say: Say = str, *, limit: int | None = None) -> dict[str, Any]:
    """Everything the answer knows. `say` puts messages into the reader's language; `limit` keeps the best few."""
    shown = answer.estimates if limit is None else answer.estimates[:limit]
    return {
        "schema": SCHEMA,
        "request": request_json(answer.request),
        "catalogue": {
            "origin": answer.catalogue,
            "as_of": answer.catalogue_as_of.isoformat() if answer.catalogue_as_of else None,
        },
        "ranked_by": say(answer.ranked_by) if answer.searched else None,
        "compared": len(answer.estimates) + len(answer.refused),
        "estimates": [estimate_json(found, say) for found in shown],
        "refused": [
            {"accelerator": refused.accelerator, "reason": say(refused.reason)}
            for refused in answer.refused
        ],
        "notes": [say(note) for note in answer.notes],
    }


def estimate_json(found: AcceleratorEstimate, say: Say = str) -> dict[str, Any]:
    """One accelerator's estimate."""
    e = found.estimate
    saturation = found.saturation
    return {
        "accelerator": _accelerator(found.accelerator),
        "kind": e.kind,
        "accelerators": {
            "total": e.accelerators,
            "replicas": found.replicas,
            "per_replica": found.per_replica,
        },
        "fits": e.fits,
        "grade": str(e.memory_bytes.grade) if not e.figures else str(_grade(e)),
        "memory": {
            "parts": [
                {"name": part.name, "bytes": part.value, "note": say(part.note) if part.note else None}
                for part in e.memory
            ],
            "total": _band(e.memory_bytes) if e.memory else None,
            "capacity_bytes": e.capacity_bytes,
        },
        "figures": {name: _band(band) for name, band in e.figures.items()},
        "saturation": None
        if saturation is None
        else {
            "compute": saturation.compute,
            "memory": saturation.memory,
            "bandwidth": saturation.bandwidth,
        },
        "layout": dict(e.layout),
        "warnings": [say(text) for text in e.warnings],
        "assumptions": [say(text) for text in e.assumptions],
        "remedies": [say(text) for text in e.remedies],
        "trace": [_step(step) for step in e.trace],
        "fleet": None if e.fleet is None else _fleet(e.fleet),
        "constants_version": e.constants_version,
    }  # fmt: skip


def _grade(e: Estimate) -> str:
    """The weakest grade among the figures: an answer is no surer than its least sure part."""
    order = ("extrapolated", "published", "measured")
    return min((str(band.grade) for band in e.figures.values()), key=order.index)


def _accelerator(accelerator: Accelerator) -> dict[str, Any]:
    return {
        "slug": accelerator.slug,
        "name": accelerator.name,
        "vendor": accelerator.vendor,
        "hbm_bytes": accelerator.hbm_bytes,
        "visible_bytes": accelerator.visible_bytes,
        "hbm_bandwidth": accelerator.hbm_bandwidth,
        "peak_flops": dict(accelerator.published_flops),
        "tdp": accelerator.tdp,
    }


def _fleet(answers: FleetAnswers) -> dict[str, Any]:
    def at(load: Latencies) -> dict[str, Any]:
        times = {"wait": load.wait, "ttft": load.ttft, "end_to_end": load.end_to_end}
        means = {"load": load.load, "tpot": load.tpot, "in_flight": load.in_flight}
        return means | {
            name: {p: _finite(seconds) for p, seconds in by.items()} for name, by in times.items()
        }

    return {
        "planned": at(answers.planned),
        "with_model_error": at(answers.with_model_error),
        "model_error": answers.model_error,
        "average": None if answers.average is None else at(answers.average),
        "full": None if answers.full is None else at(answers.full),
    }


def _band(band: Band) -> dict[str, Any]:
    return {
        "p10": _finite(band.p10),
        "p50": _finite(band.p50),
        "p90": _finite(band.p90),
        "unit": band.unit,
        "grade": str(band.grade),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "formula": step.formula,
        "inputs": {name: _finite(value) for name, value in step.inputs.items()},
        "result": _finite(step.result),
        "unit": step.unit,
    }


def _finite(value: float | str) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def error_json(error: DomainError, say: Say = str) -> dict[str, Any]:
    """A refusal: the first error, and beside it every one when there are several."""
    several = error.errors if isinstance(error, WorkloadErrors) else [error]
    listed = [_error(one, say) for one in several]
    body: dict[str, Any] = {"error": listed[0]}
    if len(listed) > 1:
        body["errors"] = listed
    return body


def _error(error: DomainError, say: Say) -> dict[str, Any]:
    body: dict[str, Any] = {"code": error.code, "field": None, "value": None, "limit": None}
    if isinstance(error, InputError):
        body |= {"field": error.field, "value": _plain(error.value), "limit": _plain(error.limit)}
    return body | {"message": say(error.message)}


def _plain(value: object) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**30 else shown(value)
    if isinstance(value, str):
        return shown(value, 200)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, Sequence) else str(value)
