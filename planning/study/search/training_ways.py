"""Every legal layout of a training job on every accelerator, and the fastest that fits for each count.

One grid of layouts per count serves all accelerators at once. For one accelerator and count only the fastest layout
that fits can be part of a best plan: the cards and their price are the same, only the hours differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from core.errors import InputError
from core.messages import Message, msg, plural
from planning.estimators.architecture import total_parameters
from planning.estimators.interruptions import checkpoint_seconds
from planning.estimators.layouts import SearchSpace, evaluate_candidates, layout_grid, trusted
from planning.estimators.training import (
    loading_seconds,
    rate_residuals,
    search_space,
    step_seconds,
    wall_seconds,
)
from planning.estimators.training_candidates import (
    Candidates,
    candidate_row,
    default_batches,
    peak_rate,
    stack,
)
from planning.estimators.training_constants import TrainingConstants, training_constants
from planning.estimators.training_time import training_time
from planning.estimators.training_workload import Layout, Recipe, TrainingWorkload, resolve
from planning.estimators.types import Accelerator
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.search.ways import Exclusion, Floats, Found, Ints, columns
from planning.study.training import to_cluster, to_layout, to_training, told_count
from planning.study.workloads import Kind

DAY = 86_400.0
HOUR = 3_600.0
MOST = 16_384  # accelerators tried when the number is open
STEPS_BEYOND = 3  # doublings tried after the first count that fits and is in time
QUICK = DAY / 4  # a run this short gains nothing from more accelerators
TRAY = 4  # accelerators in a tray of a rack-wide system: the rack is one fast domain
_TRAYS = ("nvidia-gb200", "nvidia-gb300")
_AXES = ("tensor", "pipeline", "data", "context", "expert", "virtual")


@dataclass(slots=True)
class _Progress:
    """How far one accelerator's counts have been tried."""

    index: int
    priced: bool = True  # what nobody sells is tried until it fits, not beyond
    next_count: int = 1
    fitted: bool = False
    beyond: int = 0
    least_memory: float = math.inf  # [B] of a layout at the largest count tried
    best_seconds: float = math.inf
    best_count: int = 0
    legal: bool = False
    done: bool = False


def training_ways(
    request: StudyRequest,
    known: KnownModel,
    accelerators: tuple[Accelerator, ...],
    priced: frozenset[str],
) -> Found:
    """Ways to run the training job of `request`, and the accelerators on which it cannot run.

    Raises
    ------
    InputError
        If the job itself is out of range.
    """
    constants = training_constants()
    job = to_training(request, known)
    recipe = resolve(job)
    found = Found(columns([]), 0, constants_version=constants.version)
    state: list[_Progress] = []
    for index, accelerator in enumerate(accelerators):
        try:
            peak_rate(accelerator, recipe.precision)
        except InputError as error:
            found.refused.append(
                _refused(accelerator, error.message, _other_precision(accelerator), "precision")
            )
        else:
            state.append(_Progress(index, accelerator.slug in priced))
    limit = (
        math.inf
        if request.constraints.duration_days is None
        else request.constraints.duration_days * DAY
    )
    rows: list[Mapping[str, object]] = []
    for count in _counts(request):
        if all(one.done for one in state):
            break
        active = [one for one in state if not one.done and one.next_count <= count]
        if not active:
            continue
        rows += _try(
            request, job, recipe, known, accelerators, active, count, limit, constants, found
        )
    for one in state:
        if not one.fitted:
            found.refused.append(_does_not_fit(accelerators[one.index], one))
    found.ways = columns(rows)
    return found


def _counts(request: StudyRequest) -> list[int]:
    told = told_count(request)
    if told is not None:
        return [told]
    replica = math.prod(
        int(request.options.get(name, 1))
        for name in ("tensor_parallel", "pipeline_parallel", "context_parallel")
    )
    return [replica << step for step in range(20) if replica << step <= MOST]


def _try(
    request: StudyRequest,
    job: TrainingWorkload,
    recipe: Recipe,
    known: KnownModel,
    accelerators: tuple[Accelerator, ...],
    active: list[_Progress],
    count: int,
    limit: float,
    constants: TrainingConstants,
    found: Found,
) -> list[Mapping[str, object]]:
    """The fastest layout that fits on `count` of each active accelerator, as rows of ways."""
    cluster, architecture = to_cluster(request), known.architecture
    told = to_layout(request, count)
    if request.kind == Kind.SAMPLES and told is None:
        told = Layout(data=count)
    if request.kind == Kind.SAMPLES and job.global_batch is None:
        job = replace(job, global_batch=(job.micro_batch or 1) * count)
    bases: list[dict[str, float]] = []
    for one in active:
        accelerator = accelerators[one.index]
        if told is not None:
            micro, batch = default_batches(recipe, told, job.micro_batch, job.global_batch)
            bases.append(
                candidate_row(
                    recipe, accelerator, architecture, told, cluster, micro_batch=micro, global_batch=batch,
                    sample_flops=job.flops_per_sample or 0.0,
                )
            )  # fmt: skip
            space = SearchSpace(micro_batches=(micro,), virtual_stages=(told.virtual_stages,))
            chosen = recipe
        else:
            chosen, base, space = search_space(
                job, recipe, accelerator, architecture, count, cluster
            )
            bases.append(base)
    grid = _told_grid(bases[0]) if told is not None else _grid(bases[0], chosen, count, space)
    if grid is None:
        _advance_illegal(active, count)
        return []
    names, choices = grid
    size = names["tensor"].size
    index = np.repeat(np.arange(len(bases), dtype=np.intp), size)
    tiled = {name: np.tile(column, len(bases)) for name, column in names.items()}
    result = evaluate_candidates(bases, index, tiled, constants)
    found.evaluated += index.size
    shape = (len(bases), size)
    memory = result["memory"].reshape(shape)
    fitting, sure = (result[name].reshape(shape) > 0 for name in ("fits", "sure"))
    kept = trusted(fitting, sure, memory)
    rate = np.where(kept, result["rate"].reshape(shape), -1.0)
    best = rate.argmax(axis=1)
    rows_index = np.arange(len(bases))
    fits = rate[rows_index, best] > 0
    at = np.where(fits, best, memory.argmin(axis=1))
    picked = {name: column[at] for name, column in names.items()}
    candidates = stack(bases).with_columns(**picked)
    time = training_time(candidates, constants)
    step, by_rule = step_seconds(
        job, chosen, candidates, time, architecture, constants, searched=told is None
    )
    rows: list[Mapping[str, object]] = []
    for i, one in enumerate(active):
        one.legal = True
        if not fits[i]:
            one.least_memory = float(memory[i].min())
            one.done = count >= MOST or told_count(request) is not None
            continue
        layout = _layout(picked, choices, at, i, chosen)
        row = _row(
            request, job, one.index, count, candidates, i,
            step=max(float(step[i]), loading_seconds(job, int(candidates_value(candidates.global_batch, i)))),
            tokens=float(np.broadcast_to(time.tokens, step.shape)[i]),
            memory=float(memory[i, at[i]]), layout=layout, limit=limit,
            residuals=rate_residuals(
                chosen, int(candidates_value(candidates.efficiency_class, i)),
                sparse=candidates_value(candidates.experts, i) > 0, by_rule=bool(by_rule[i]), constants=constants,
            ) if job.mfu is None else (1.0, 1.0),
            parameters=total_parameters(architecture),
            largest=TRAY if accelerators[one.index].slug.startswith(_TRAYS) else count,
            precision=_precision(accelerators[one.index], job.precision),
        )  # fmt: skip
        if row is None:
            found.refused.append(_never_ends(accelerators[one.index], count))
            one.done = one.fitted = True
            continue
        rows.append(row)
        _advance(one, row, count, limit)
    return rows


def candidates_value(column: Floats, i: int) -> float:
    """Entry `i` of a column that may hold one value for all."""
    return float(column[0] if column.size == 1 else column[i])


def _precision(accelerator: Accelerator, asked: str) -> str:
    """The precision in which the accelerator runs: without BF16 units it is FP16 with loss scaling."""
    lacks = asked == "bf16" and not accelerator.peak_flops.get("bf16")
    return "fp16" if lacks and accelerator.peak_flops.get("fp16") else asked


def _grid(
    base: dict[str, float], recipe: Recipe, count: int, space: SearchSpace
) -> tuple[dict[str, Floats], tuple[dict[str, Floats], SearchSpace]] | None:
    names, legal = layout_grid(base, recipe, count, space)
    kept = np.flatnonzero(legal)
    if not kept.size:
        return None
    names = {name: column[kept] for name, column in names.items()}
    chosen = {name: names.pop(name) for name in ("_recompute", "_sharding")}
    return names, (chosen, space)


def _told_grid(
    base: dict[str, float],
) -> tuple[dict[str, Floats], tuple[dict[str, Floats], SearchSpace]]:
    names = {name: np.array([base[name]]) for name in (*_AXES, "micro_batch")}
    nothing = np.zeros(1)
    return names, ({"_recompute": nothing, "_sharding": nothing}, SearchSpace())


def _layout(
    picked: Mapping[str, Floats],
    choices: tuple[dict[str, Floats], SearchSpace],
    at: Ints,
    i: int,
    recipe: Recipe,
) -> dict[str, int | str]:
    chosen, space = choices
    recompute, sharding = (int(chosen[name][at[i]]) for name in ("_recompute", "_sharding"))
    return {
        **{name: int(picked[name][i]) for name in _AXES},
        "micro_batch": int(picked["micro_batch"][i]),
        "recompute": space.recompute[recompute] if space.recompute else recipe.recompute,
        "sharding": space.sharding[sharding] if space.sharding else recipe.sharding,
    }


def _row(
    request: StudyRequest,
    job: TrainingWorkload,
    index: int,
    count: int,
    c: Candidates,
    i: int,
    *,
    step: float,
    tokens: float,
    memory: float,
    layout: dict[str, int | str],
    limit: float,
    residuals: tuple[float, float],
    parameters: float,
    largest: int,
    precision: str,
) -> dict[str, object] | None:
    """One way; None where hardware fails faster than the job advances."""
    total = job.samples if candidates_value(c.sample_flops, i) > 0 else job.tokens
    if total is None:
        raise InputError("tokens", msg("%(field)s is missing", field="tokens"))
    seconds = total / (tokens / step * job.packing)
    trained = candidates_value(c.adapter_parameters, i) or parameters
    wall = wall_seconds(job, seconds, count, candidates_value(c.node, i), trained)
    if wall is None:
        return None
    checkpoint = checkpoint_seconds(trained, job.storage_bandwidth) / HOUR
    low, high = residuals
    layout["global_batch"] = int(candidates_value(c.global_batch, i))
    return {
        "accelerator": index,
        "cards": count,
        "linked": min(count, int(candidates_value(c.node, i)), largest),
        "work_hours": seconds / HOUR,
        "hours": wall / HOUR,
        "span_hours": wall / HOUR,
        "starts": 1,
        "seconds": wall,
        "time_low": 1.0 / high,
        "time_high": 1.0 / low,
        "accuracy_loss": 0.0,
        "memory_bytes": memory,
        "checkpoint_hours": checkpoint if request.constraints.interruptible else math.nan,
        "precision": precision,
        "layout": layout,
        "within": wall <= limit,
        "limit": limit,
    }


def _advance(one: _Progress, row: Mapping[str, object], count: int, limit: float) -> None:
    """Note a count that fits. A few doublings beyond the first that is in time are enough; where it is far too slow the
    counts between are skipped."""
    seconds = float(str(row["seconds"]))
    gain = one.best_seconds / seconds
    one.fitted = True
    if seconds < one.best_seconds:
        one.best_seconds, one.best_count = seconds, count
    if row["within"]:
        one.beyond += 1
    elif seconds / limit > 4:
        one.next_count = 1 << int(math.log2(count * seconds / limit * 0.5))
    one.done = (
        not one.priced
        or one.beyond > STEPS_BEYOND
        or (bool(row["within"]) and seconds < QUICK)
        or gain < 1.05
    )


def _advance_illegal(active: list[_Progress], count: int) -> None:
    """A count that divides nothing ends the search where smaller ones worked."""
    for one in active:
        if one.legal:
            one.done = True


def _refused(
    accelerator: Accelerator, reason: Message, change: Message | None, code: str
) -> Exclusion:
    return Exclusion("accelerator", accelerator.slug, reason, change, code)


def _other_precision(accelerator: Accelerator) -> Message:
    return msg(
        "Train in one of: %(options)s", options=", ".join(sorted(accelerator.peak_flops)) or "–"
    )


def _does_not_fit(accelerator: Accelerator, one: _Progress) -> Exclusion:
    if not one.legal:
        return _refused(
            accelerator,
            msg("No split of the model over a number of accelerators that was tried is legal"),
            msg("Another global batch or number of accelerators, so that layers and heads divide"),
            "layout",
        )
    lack = (one.least_memory - accelerator.visible_bytes) / 1e9
    return _refused(
        accelerator,
        msg(
            "Out of memory: the smallest layout needs %(need)s GB on each accelerator, there are %(have)s GB",
            need=round(one.least_memory / 1e9, 1),
            have=round(accelerator.visible_bytes / 1e9, 1),
        ),
        msg(
            "%(lack)s GB less on each: a shorter sequence, a smaller optimiser state, or offloading",
            lack=round(lack, 1),
        ),
        "memory",
    )


def _never_ends(accelerator: Accelerator, count: int) -> Exclusion:
    return _refused(
        accelerator,
        plural(
            count,
            msg("With one accelerator hardware fails faster than the job advances"),
            msg(
                "With %(count)s accelerators hardware fails faster than the job advances",
                count=count,
            ),
        ),
        msg("Faster storage for checkpoints, or fewer accelerators"),
        "reliability",
    )
