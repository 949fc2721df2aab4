"""The estimate by FLOP per sample: memory, batch, throughput, latency and number of accelerators, with bands and trace.

One replica is one accelerator: a model that does not fit on one is refused with what it lacks.
"""

from __future__ import annotations

import math
from dataclasses import replace

from core.messages import Message, msg, plural
from planning.estimators.fleet import (
    FEW_SLOTS,
    few_slots,
    latency_decides,
    overloaded,
    overloaded_if_wrong,
)
from planning.estimators.inference_bands import band, measured_over_estimated, sample_grade
from planning.estimators.inference_constants import Constants, published_constants
from planning.estimators.precision import compute_rate, sparse_rate_warnings, weight_format
from planning.estimators.sample_fleet import (
    SampleFleet,
    SampleService,
    plan_sample_fleet,
    sample_answers,
)
from planning.estimators.samples import SampleTime, SampleWorkload, sample_time
from planning.estimators.types import (
    Accelerator,
    Band,
    Estimate,
    FleetAnswers,
    Grade,
    Part,
    Saturation,
    Step,
)

GB = 1e9
BATCHES = (1, 2, 4, 8, 16, 32, 64)
RUNTIME = 1.2 * GB  # driver context, runtime, workspaces of the libraries
RUNTIME_SPREAD = 0.4
RULE_SPREAD = 3.0  # how far the rule for activations may be off, up and down
TOLD_SPREAD = 1.1
WEIGHT_SPREAD = 0.02
IDLE_COMPUTE = 0.15


def sample_memory(workload: SampleWorkload) -> tuple[tuple[Part, ...], Band]:
    """The memory bar of one accelerator, and its total with P10 and P90. [B]"""
    activations = workload.batch * workload.activations
    spread = RULE_SPREAD if workload.activation_bytes is None else TOLD_SPREAD
    note = _note(round(workload.batch), told=workload.activation_bytes is not None)
    parts = (
        Part("weights", workload.weights),
        Part("activations", activations, note),
        Part("overhead", RUNTIME, msg("Driver, runtime and workspaces of the libraries.")),
    )
    used, sure = sum(part.value for part in parts), workload.weights + RUNTIME
    low = sure - RUNTIME_SPREAD * RUNTIME + activations / spread
    high = sure + RUNTIME_SPREAD * RUNTIME + WEIGHT_SPREAD * workload.weights + activations * spread
    return parts, Band(low, used, high, "B", Grade.EXTRAPOLATED)


def _note(samples: int, *, told: bool) -> Message:
    if told:
        return plural(
            samples,
            msg("One sample at a time, as told"),
            msg("%(samples)s samples at a time, as told", samples=samples),
        )
    return plural(
        samples,
        msg("One sample at a time, by a rule from FLOP"),
        msg("%(samples)s samples at a time, by a rule from FLOP", samples=samples),
    )


def batches_that_fit(
    workload: SampleWorkload, accelerator: Accelerator, most: int | None = None
) -> tuple[int, ...]:
    """Batches worth trying on `accelerator`: those whose P90 of memory fits; if none, those whose P50 does; up to
    `most`, which is tried itself."""
    tried = [b for b in BATCHES if most is None or b < most] + ([] if most is None else [most])
    bands = {b: sample_memory(replace(workload, batch=float(b)))[1] for b in tried}
    sure = tuple(b for b in tried if bands[b].p90 <= accelerator.visible_bytes)
    return sure or tuple(b for b in tried if bands[b].p50 <= accelerator.visible_bytes)[:1]


def estimate_samples(
    workload: SampleWorkload,
    accelerator: Accelerator,
    *,
    service: SampleService | None = None,
    accelerators: int | None = None,
    largest_batch: int | None = None,
    constants: Constants | None = None,
) -> Estimate:
    """Memory, time of a batch, throughput and, for a service, the fleet with its latencies.

    Without a `service` the largest batch that fits is run on `accelerators` (or one). A model that does not fit is not
    an error: `fits` says "out_of_memory", `remedies` what is lacking and what would help.

    Raises
    ------
    InputError
        Naming the field, the value and the limit.
    InfeasibleError
        If no batch of the service answers within its bound.
    """
    k = constants or published_constants()
    sample_time(workload, accelerator, k)  # refuses what is out of range
    grade = sample_grade(k, accelerator, workload.network)
    batches = batches_that_fit(workload, accelerator, largest_batch)
    if not batches:
        return _too_large(replace(workload, batch=1.0), accelerator, k, grade)
    fleet, answers = None, None
    if service is None:
        chosen, replicas = replace(workload, batch=float(batches[-1])), accelerators or 1
    else:
        fleet = plan_sample_fleet(workload, accelerator, service, k, batches, replicas=accelerators)
        low, _ = measured_over_estimated(k, "samples", sparse=False, grade=grade)
        answers = sample_answers(fleet, service, max(1.0 / low - 1.0, 0.0))
        chosen, replicas = fleet.workload, fleet.replicas
    time = sample_time(chosen, accelerator, k)
    parts, memory = sample_memory(chosen)
    load = 1.0 if answers is None else min(answers.planned.load, 1.0)
    saturation = _saturation(chosen, accelerator, time, memory.p50, load)
    return Estimate(
        kind="samples",
        accelerator=accelerator.slug,
        accelerators=replicas,
        memory=parts,
        memory_bytes=replace(memory, grade=grade),
        capacity_bytes=accelerator.visible_bytes,
        fits="tight" if memory.p90 > accelerator.visible_bytes else "fits",
        figures=_figures(chosen, time, replicas, answers, k, grade),
        saturation=saturation,
        layout={
            "replicas": replicas,
            "accelerators_per_replica": 1,
            "batch": int(chosen.batch),
            "weights_dtype": chosen.dtype,
        },
        warnings=_warnings(chosen, accelerator, saturation, fleet, service, answers, memory),
        assumptions=_assumptions(chosen),
        trace=_trace(chosen, accelerator, time, fleet, service, answers),
        constants_version=k.version,
        fleet=answers,
    )


def _figures(
    workload: SampleWorkload,
    time: SampleTime,
    replicas: int,
    answers: FleetAnswers | None,
    k: Constants,
    grade: Grade,
) -> dict[str, Band]:
    rate = workload.batch / time.total
    each = band(rate, "1/s", k, "samples", sparse=False, grade=grade)
    figures = {
        "batch_time": Band(
            workload.batch / each.p90, time.total, workload.batch / each.p10, "s", grade
        ),
        "throughput": Band(
            replicas * each.p10, replicas * each.p50, replicas * each.p90, "1/s", grade
        ),
        "throughput_per_accelerator": each,
        "batch": Band(workload.batch, workload.batch, workload.batch, "samples", grade),
    }
    if answers is None:
        return figures
    planned, off = answers.planned, answers.with_model_error
    return {
        **figures,
        **{
            f"end_to_end_{p}": Band(
                planned.end_to_end[p] * each.p50 / each.p90,
                planned.end_to_end[p],
                off.end_to_end[p],
                "s",
                grade,
            )
            for p in planned.end_to_end
        },
        "load": Band(planned.load * each.p50 / each.p90, planned.load, off.load, "1", grade),
    }


def _saturation(
    workload: SampleWorkload,
    accelerator: Accelerator,
    time: SampleTime,
    memory: float,
    load: float,
) -> Saturation:
    """Shares of peak FLOP/s, of memory and of bandwidth in use at the planned load."""
    _, peak = compute_rate(accelerator, workload.dtype)
    moved = workload.passes * (workload.weights + workload.batch * workload.activations)
    return Saturation(
        compute=min(load * workload.flops * workload.batch / (peak * time.total), 1.0),
        memory=min(memory / accelerator.visible_bytes, 1.0),
        bandwidth=min(load * moved / (accelerator.hbm_bandwidth * time.total), 1.0),
    )


def _too_large(
    workload: SampleWorkload, accelerator: Accelerator, k: Constants, grade: Grade
) -> Estimate:
    parts, memory = sample_memory(workload)
    return Estimate(
        kind="samples",
        accelerator=accelerator.slug,
        accelerators=1,
        memory=parts,
        memory_bytes=replace(memory, grade=grade),
        capacity_bytes=accelerator.visible_bytes,
        fits="out_of_memory",
        figures={},
        saturation=Saturation(0.0, 1.0, 0.0),
        layout={
            "replicas": 1,
            "accelerators_per_replica": 1,
            "batch": 1,
            "weights_dtype": workload.dtype,
        },
        assumptions=_assumptions(workload),
        remedies=_remedies(workload, accelerator, memory.p50),
        constants_version=k.version,
    )


def _remedies(
    workload: SampleWorkload, accelerator: Accelerator, needed: float
) -> tuple[Message, ...]:
    out = [
        msg(
            "%(lack)s GB are lacking on each accelerator: %(need)s GB needed, %(have)s GB there.",
            lack=round((needed - accelerator.visible_bytes) / GB, 1),
            need=round(needed / GB, 1),
            have=round(accelerator.visible_bytes / GB, 1),
        )
    ]
    for dtype in ("fp8", "int8", "int4"):
        lower = replace(workload, dtype=dtype)
        if lower.weights < workload.weights and batches_that_fit(lower, accelerator):
            low, high = weight_format(dtype).accuracy_loss
            out.append(
                msg(
                    "Store the weights in %(dtype)s: %(low)s to %(high)s %% of accuracy (MMLU) lost.",
                    dtype=dtype.upper(),
                    low=low,
                    high=high,
                )
            )
            break
    smaller = workload.activations / 4
    if (
        sample_memory(replace(workload, activation_bytes=smaller))[1].p50
        <= accelerator.visible_bytes
    ):
        out.append(
            msg(
                "Take smaller samples (resolution, length), or run each in tiles: a quarter is enough."
            )
        )
    out.append(
        msg("Take an accelerator with at least %(need)s GB of memory.", need=math.ceil(needed / GB))
    )
    return tuple(out)


def _plain(value: float) -> float | int:
    """At four digits, whole where it is whole."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short


def _assumptions(workload: SampleWorkload) -> tuple[Message, ...]:
    out = [
        msg(
            "One sample is %(flops)s GFLOP, every pass included; a %(network)s network reaches the share of the peak "
            "rate that MLPerf measured for its kind.",
            flops=_plain(workload.flops / 1e9),
            network=workload.network,
        ),
        msg(
            "%(passes)s passes through the weights follow each other for one sample.",
            passes=_plain(workload.passes),
        )
        if workload.passes > 1
        else msg("One pass through the weights answers a sample."),
        msg("One accelerator serves whole samples: a model is not split over several."),
    ]
    if workload.activation_bytes is None:
        out.append(
            msg(
                "Activations are estimated by a rule from FLOP, right within a factor of %(factor)s: "
                "tell what one sample takes, or measure it.",
                factor=round(RULE_SPREAD),
            )
        )
    return tuple(out)


def _warnings(
    workload: SampleWorkload,
    accelerator: Accelerator,
    saturation: Saturation,
    fleet: SampleFleet | None,
    service: SampleService | None,
    answers: FleetAnswers | None,
    memory: Band,
) -> tuple[Message, ...]:
    out: list[Message] = []
    if memory.p90 > accelerator.visible_bytes:
        out.append(
            msg(
                "Tight: at the P90 %(lack)s GB are lacking on each accelerator.",
                lack=round((memory.p90 - accelerator.visible_bytes) / GB, 1),
            )
        )
    if saturation.compute < IDLE_COMPUTE and workload.batch < BATCHES[-1]:
        out.append(
            plural(
                round(workload.batch),
                msg("Compute is idle: one sample at a time. Batch more before buying more."),
                msg(
                    "Compute is idle: %(batch)s samples at a time. Batch more before buying more.",
                    batch=round(workload.batch),
                ),
            )
        )
    out += sparse_rate_warnings(accelerator, workload.dtype)
    if fleet is None or service is None or answers is None:
        return tuple(out)
    slots = fleet.replicas * int(fleet.workload.batch)
    if answers.planned.load >= 1.0:
        out.append(overloaded(answers.planned.load))
    elif fleet.binding == "latency":
        out.append(latency_decides(1.0 / answers.planned.load - 1.0, service.headroom, slots))
    if slots < FEW_SLOTS:
        out.append(few_slots(slots))
    if answers.planned.load < 1.0 <= answers.with_model_error.load:
        out.append(overloaded_if_wrong(answers.model_error))
    return tuple(out)


def _trace(
    workload: SampleWorkload,
    accelerator: Accelerator,
    time: SampleTime,
    fleet: SampleFleet | None,
    service: SampleService | None,
    answers: FleetAnswers | None,
) -> tuple[Step, ...]:
    _, peak = compute_rate(accelerator, workload.dtype)
    lines = [
        Step("effective rate", "peak x efficiency", {"peak": peak}, time.rate, "FLOP/s"),
        Step(
            "computing a batch",
            "b F / rate",
            {"b": workload.batch, "F": workload.flops},
            time.compute,
            "s",
        ),
        Step(
            "reading weights and activations",
            "passes (W + b A) / (bandwidth x efficiency)",
            {
                "passes": workload.passes,
                "W": workload.weights,
                "A": workload.activations,
                "bandwidth": accelerator.hbm_bandwidth,
            },
            time.reading,
            "s",
        ),
        Step(
            "batch_time",
            "max(computing, reading) + passes x launch"
            if time.overlap
            else "computing + reading + passes x launch",
            {"launches": time.launches},
            time.total,
            "s",
        ),
        Step(
            "throughput of a replica",
            "b / t",
            {"t": time.total},
            workload.batch / time.total,
            "1/s",
        ),
    ]
    if fleet is None or service is None or answers is None:
        return tuple(lines)
    lines += [
        Step(
            "peak rate",
            "mean rate x peak factor",
            {"mean": service.request_rate, "factor": service.peak_factor},
            service.peak,
            "1/s",
        ),
        Step(
            "replicas by headroom",
            "ceil(peak (1 + headroom) / throughput)",
            {"headroom": service.headroom, "by division": fleet.by_division},
            fleet.by_headroom,
            "1",
        ),
    ]
    if fleet.by_latency is not None:
        lines.append(
            Step(
                "replicas by latency",
                "fewest with wait(p) <= bound - t (1 + p)",
                {"p": service.percentile, "bound": service.latency_slo or 0.0},
                fleet.by_latency,
                "1",
            )
        )
    lines.append(
        Step(
            "load of the slots",
            "rho = peak t / (replicas b)",
            {"replicas": fleet.replicas},
            answers.planned.load,
            "1",
        )
    )
    return tuple(lines)
