"""The training estimate: memory, time, energy and layout of one job, with bands, warnings and a trace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError, require_at_least
from core.messages import Message, msg
from planning.estimators.architecture import active_parameters, total_parameters, validate
from planning.estimators.interruptions import checkpoint_seconds, plan_checkpoints
from planning.estimators.layouts import SearchSpace, search_layouts
from planning.estimators.training_advice import (
    assumption_messages,
    filled_pipeline,
    idle_stages,
    name_the_framework,
    remedies,
    tight,
    warnings,
)
from planning.estimators.training_candidates import (
    Array,
    Candidates,
    candidate_row,
    default_batches,
    stack,
)
from planning.estimators.training_constants import (
    TrainingConstants,
    row_kind,
    training_constants,
)
from planning.estimators.training_memory import (
    PART_NAMES,
    TrainingMemory,
    memory_bounds,
    training_memory,
)
from planning.estimators.training_rule import rule_rate
from planning.estimators.training_time import (
    TrainingTime,
    commodity_efficiency,
    training_time,
)
from planning.estimators.training_workload import (
    HIGHEST_MFU,
    Cluster,
    Layout,
    Recipe,
    TrainingWorkload,
    require_at_most,
    resolve,
)
from planning.estimators.types import (
    Accelerator,
    Architecture,
    Band,
    Estimate,
    Grade,
    InfeasibleError,
    Part,
    Saturation,
    Step,
)

HOUR = 3_600.0
LARGEST_CLUSTER = 200_000
POWER_SHARE = 0.9  # of the TDP, drawn on average while training
ENOUGH = 10  # measured rows of a kind, from which on an estimate is near them
EXAMPLE_FRAMEWORK = (
    "megatron"  # what many cards are trained with; shows what naming a framework does
)
MANY = 16  # accelerators, from which on an example is worth its search

_MEMORY_FORMULAS = {
    "weights": "P x bytes / shards",
    "gradients": "P x bytes / shards",
    "optimizer": "P x bytes / shards, or what the optimiser step needs",
    "activations": "b s x bytes per token and layer x layers in flight",
    "logits": "b s V x bytes / t",
}
_TIME_FORMULAS = {
    "matrix": "m x 2 k N b s / (t p) / (peak x efficiency)",
    "attention": "m x attention FLOP / (peak x efficiency)",
    "elementwise": "m x bytes / (0.85 x bandwidth)",
    "tensor_communication": "m x 4 all-reduces a layer / link",
    "expert_communication": "m x dispatch and combine",
    "context_communication": "m x keys and values of the other parts",
    "bubble": "(p - 1) / (v m) x busy time",
    "data_communication": "traffic that computing does not hide",
    "update": "state bytes / bandwidth",
    "other": "launches, stragglers, framework factor, cluster efficiency",
}


def pretraining_flops(parameters: float, tokens: float) -> float:
    """Compute of a pre-training run without attention, 6 N D. [FLOP]"""
    require_at_least("parameters", parameters, 0.0)
    require_at_least("tokens", tokens, 0.0)
    return 6.0 * parameters * tokens


@dataclass(frozen=True, slots=True)
class _Plan:
    """One candidate with everything that was computed about it."""

    recipe: Recipe
    layout: Layout
    row: dict[str, float]
    candidate: Candidates
    memory: TrainingMemory
    time: TrainingTime
    step_time: float
    by_rule: bool
    notes: tuple[Message, ...]
    surer: bool  # a search looked for layouts whose P90 fits


def estimate_training(
    workload: TrainingWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    *,
    accelerators: int,
    layout: Layout | None = None,
    cluster: Cluster | None = None,
    constants: TrainingConstants | None = None,
) -> Estimate:
    """Memory per accelerator, step time, rate, hours and energy of a training job.

    Without a `layout` the fastest legal one is searched whose P90 of memory fits, else whose P50 does ("tight"). A job
    that does not fit is not an error: `fits` says "out_of_memory" and `remedies` lists the three cheapest changes that
    would make it fit, after what is lacking.

    Raises
    ------
    InputError
        Naming the field, the value and the limit.
    InfeasibleError
        If no split over this many accelerators is legal.
    """
    constants = constants or training_constants()
    cluster = cluster or Cluster()
    require_at_least("accelerators", accelerators, 1)
    require_at_most("accelerators", accelerators, LARGEST_CLUSTER)
    require_at_least("accelerators_per_node", cluster.accelerators_per_node, 1)
    validate(architecture)
    _check_context(workload, architecture)
    recipe = resolve(workload)
    plan = _plan(
        workload, recipe, accelerator, architecture, accelerators, layout, cluster, constants
    )
    memory_bytes = _memory_band(plan, constants)
    capacity = accelerator.visible_bytes
    fits = "fits"
    if memory_bytes.p50 > capacity:
        fits = "out_of_memory"
    elif memory_bytes.p90 > capacity:
        fits = "tight"
    figures, trace = _figures(workload, plan, accelerator, architecture, accelerators, constants)
    saturation = _saturation(plan, memory_bytes.p50 / capacity)
    named = (
        _named_mfu(workload, accelerator, architecture, accelerators, cluster, constants)
        if plan.by_rule
        else None
    )
    return Estimate(
        kind="training",
        accelerator=accelerator.slug,
        accelerators=accelerators,
        memory=tuple(
            Part(name, float(getattr(plan.memory, name)[0]))
            for name in PART_NAMES
            if float(getattr(plan.memory, name)[0]) > 0.0
        ),
        memory_bytes=memory_bytes,
        capacity_bytes=capacity,
        fits=fits,
        figures=figures,
        saturation=saturation,
        layout={
            "tensor": plan.layout.tensor,
            "pipeline": plan.layout.pipeline,
            "data": plan.layout.data,
            "context": plan.layout.context,
            "expert": plan.layout.expert,
            "virtual_stages": plan.layout.virtual_stages,
            "micro_batch": int(plan.row["micro_batch"]),
            "global_batch": int(plan.row["global_batch"]),
            "recompute": plan.recipe.recompute,
            "sharding": plan.recipe.sharding,
        },
        warnings=(
            *tight(memory_bytes.p90 - capacity if fits == "tight" else 0.0, plan.surer),
            *(
                name_the_framework(figures["mfu"].p50, EXAMPLE_FRAMEWORK, named)
                if plan.by_rule
                else ()
            ),
            *idle_stages(plan.row, plan.time),
            *warnings(
                workload,
                accelerator,
                architecture,
                accelerators,
                figures,
                saturation,
                reachable=named,
            ),
        ),
        assumptions=(
            *architecture.assumed,
            *plan.notes,
            *assumption_messages(plan.recipe, plan.row, accelerator, architecture, constants),
        ),
        remedies=remedies(plan.recipe, plan.row, accelerator, architecture, constants)
        if fits == "out_of_memory"
        else (),
        trace=trace,
        constants_version=constants.version,
    )


def _named_mfu(
    workload: TrainingWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    accelerators: int,
    cluster: Cluster,
    constants: TrainingConstants,
) -> float | None:
    """MFU of the same job were its framework named; None where that would not show anything. [1]"""
    if accelerators < MANY or workload.method not in ("pretrain", "full"):
        return None
    if workload.flops_per_sample is not None:
        return None
    named = replace(workload, framework=EXAMPLE_FRAMEWORK)
    plan = _plan(
        named, resolve(named), accelerator, architecture, accelerators, None, cluster, constants
    )
    if float(plan.memory.total[0]) > accelerator.visible_bytes:
        return None
    return float(plan.time.model_flops[0]) / (plan.step_time * plan.row["peak_16"])


def _check_context(workload: TrainingWorkload, architecture: Architecture) -> None:
    longest = architecture.max_context
    if longest is not None and workload.sequence_length > longest:
        raise InputError(
            "sequence_length",
            msg(
                "sequence_length is %(value)s; %(model)s takes at most %(limit)s tokens",
                value=workload.sequence_length,
                model=architecture.name,
                limit=longest,
            ),
            value=workload.sequence_length,
            limit=longest,
        )


def _plan(
    workload: TrainingWorkload,
    recipe: Recipe,
    accelerator: Accelerator,
    architecture: Architecture,
    accelerators: int,
    layout: Layout | None,
    cluster: Cluster,
    constants: TrainingConstants,
) -> _Plan:
    notes: tuple[Message, ...] = ()
    searched = layout is None
    if layout is None:
        recipe, layout, batches, notes = _search(
            workload, recipe, accelerator, architecture, accelerators, cluster, constants
        )
    else:
        check_layout(layout, architecture, accelerators)
        batches = default_batches(recipe, layout, workload.micro_batch, workload.global_batch)
        if workload.global_batch is None:
            notes = filled_pipeline(layout, batches)
    row = candidate_row(
        recipe,
        accelerator,
        architecture,
        layout,
        cluster,
        micro_batch=batches[0],
        global_batch=batches[1],
        sample_flops=workload.flops_per_sample or 0.0,
    )
    candidate = stack([row])
    memory, time = training_memory(candidate, constants), training_time(candidate, constants)
    steps, ruled = step_seconds(
        workload, recipe, candidate, time, architecture, constants, searched=searched
    )
    step, by_rule = float(steps[0]), bool(ruled[0])
    loading = loading_seconds(workload, batches[1])
    if loading > step:
        notes += (
            msg(
                "Reading data takes %(loading)s s a step, longer than computing (%(step)s s): storage decides.",
                loading=round(loading, 3),
                step=round(step, 3),
            ),
        )
    return _Plan(
        recipe, layout, row, candidate, memory, time, max(step, loading), by_rule, notes, searched
    )


def step_seconds(
    workload: TrainingWorkload,
    recipe: Recipe,
    c: Candidates,
    time: TrainingTime,
    architecture: Architecture,
    constants: TrainingConstants,
    *,
    searched: bool,
) -> tuple[Array, NDArray[np.bool_]]:
    """Seconds of a step without reading data, and where the plain rule gave them. [s], [bool], shape (n,)

    The rule counts where layout and framework are both unknown, and its MFU stays below what was ever published:
    it knows little of new generations, and where it beats them the parts are summed.
    """
    step = np.array(time.total, dtype=np.float64)
    ruled = np.zeros(step.shape, dtype=bool)
    if workload.mfu is not None:
        return np.broadcast_to(
            _step_at(workload.mfu, c, time, architecture), step.shape
        ).copy(), ruled
    if searched and not recipe.framework:
        by_rate = time.tokens / c.accelerators / rule_rate(c, constants)
        ruled = (c.commodity == 0) & (time.model_flops / (by_rate * c.peak_16) <= HIGHEST_MFU)
        step = np.where(ruled, by_rate, step)
    return step, ruled


def search_space(
    workload: TrainingWorkload,
    recipe: Recipe,
    accelerator: Accelerator,
    architecture: Architecture,
    accelerators: int,
    cluster: Cluster,
) -> tuple[Recipe, dict[str, float], SearchSpace]:
    """What a search over layouts starts from: the recipe, the base candidate and what may vary."""
    start = Layout(data=accelerators)
    if accelerators == 1 and "sharding" in recipe.defaulted:
        recipe = replace(recipe, sharding="none")  # there is nobody to share with
    micro, batch = default_batches(recipe, start, workload.micro_batch, workload.global_batch)
    if workload.global_batch is None:
        batch = accelerators * max(round(batch / accelerators), 1)
    base = candidate_row(
        recipe,
        accelerator,
        architecture,
        start,
        cluster,
        micro_batch=micro,
        global_batch=batch,
        sample_flops=workload.flops_per_sample or 0.0,
    )
    free = "recompute" in recipe.defaulted
    space = SearchSpace(
        context=(1, 2, 4, 8) if workload.sequence_length > 32_768 else (1,),
        micro_batches=(workload.micro_batch,) if workload.micro_batch else (1, 2, 4, 8, 16),
        recompute=("none", "selective", "full") if free else (),
        sharding=("none", "zero1", "zero3")
        if "sharding" in recipe.defaulted and accelerators > 1
        else (),
    )
    return recipe, base, space


def _search(
    workload: TrainingWorkload,
    recipe: Recipe,
    accelerator: Accelerator,
    architecture: Architecture,
    accelerators: int,
    cluster: Cluster,
    constants: TrainingConstants,
) -> tuple[Recipe, Layout, tuple[int, int], tuple[Message, ...]]:
    """The fastest layout that fits, over the recipe's open choices."""
    recipe, base, space = search_space(
        workload, recipe, accelerator, architecture, accelerators, cluster
    )
    found = search_layouts(base, recipe, accelerators, space=space, constants=constants)
    chosen = found.best or found.least_memory
    note = msg(
        "The layout was searched: of %(considered)s, %(illegal)s do not divide and %(large)s do not fit.",
        considered=found.considered,
        illegal=found.illegal,
        large=found.too_large,
    )
    lost = tuple(
        msg(
            "Tensor %(tensor)s, pipeline %(pipeline)s, data %(data)s loses: %(reason)s",
            tensor=loser.layout.tensor,
            pipeline=loser.layout.pipeline,
            data=loser.layout.data,
            reason=loser.reason or "",
        )
        for loser in found.losers[:3]
    )
    recipe = replace(recipe, recompute=chosen.recompute, sharding=chosen.sharding)
    paid = () if found.price_of_room is None else (found.price_of_room,)
    return recipe, chosen.layout, (chosen.micro_batch, chosen.global_batch), (note, *paid, *lost)


def check_layout(layout: Layout, architecture: Architecture, accelerators: int) -> None:
    """Refuse a layout that does not multiply to the count or does not divide the model.

    Raises
    ------
    InputError
        Naming the field, the value and what it must divide.
    """
    for name in ("tensor", "pipeline", "data", "context", "expert", "virtual_stages"):
        require_at_least(name, getattr(layout, name), 1)
    if layout.accelerators != accelerators:
        raise InputError(
            "layout",
            msg(
                "the layout uses %(used)s accelerators (tensor x pipeline x data x context); %(count)s are given",
                used=layout.accelerators,
                count=accelerators,
            ),
            value=layout.accelerators,
            limit=accelerators,
        )
    divides = [
        ("tensor", layout.tensor, "heads", architecture.heads),
        (
            "expert",
            layout.expert,
            "data x context ranks",
            layout.data * layout.context,
        ),
    ]
    for field, value, what, whole in divides:
        if whole % value:
            raise InputError(
                field,
                msg(
                    "%(field)s is %(value)s; it must divide %(what)s (%(whole)s)",
                    field=field,
                    value=value,
                    what=what,
                    whole=whole,
                ),
                value=value,
                limit=whole,
            )
    require_at_most("pipeline", layout.pipeline, architecture.layers)
    require_at_most("expert", layout.expert, architecture.moe.experts if architecture.moe else 1)
    if layout.pipeline == 1:  # without stages there is nothing to interleave
        require_at_most("virtual_stages", layout.virtual_stages, 1)
    require_at_most(
        "virtual_stages", layout.virtual_stages, max(architecture.layers // layout.pipeline, 1)
    )


def _step_at(mfu: float, c: Candidates, time: TrainingTime, architecture: Architecture) -> Array:
    """Step time at a given MFU, which counts 6 N per token and nothing for attention. [s], shape (n,)"""
    work = np.where(
        c.sample_flops > 0,
        time.tokens * c.sample_flops,
        time.tokens * 2.0 * c.passes * active_parameters(architecture),
    )
    result: Array = work / (c.accelerators * c.peak_16 * mfu)
    return result


def loading_seconds(workload: TrainingWorkload, global_batch: int) -> float:
    """Reading one step's data from storage; 0 when the bandwidth was not told. [s]"""
    if workload.data_bandwidth is None:
        return 0.0
    each = workload.bytes_per_sample or 4.0 * workload.sequence_length
    return global_batch * each / workload.data_bandwidth


def _memory_band(plan: _Plan, constants: TrainingConstants) -> Band:
    low, high = memory_bounds(plan.memory, constants)
    total = float(plan.memory.total[0])
    return Band(float(low[0]), total, float(high[0]), "B", _grade(plan, constants))


def _grade(plan: _Plan, constants: TrainingConstants) -> Grade:
    return grade_of(
        plan.recipe,
        int(plan.row["efficiency_class"]),
        sparse=plan.row["experts"] > 0,
        constants=constants,
    )


def grade_of(
    recipe: Recipe, efficiency_class: int, *, sparse: bool, constants: TrainingConstants
) -> Grade:
    """How near published measurements a recipe lies: its framework is known, and the constants saw enough rows of its
    generation, precision and kind of model."""
    rows = constants.measured_rows.get(row_kind(efficiency_class, sparse=sparse), 0)
    return Grade.PUBLISHED if recipe.framework and rows >= ENOUGH else Grade.EXTRAPOLATED


def rate_residuals(
    recipe: Recipe,
    efficiency_class: int,
    *,
    sparse: bool,
    by_rule: bool,
    constants: TrainingConstants,
) -> tuple[float, float]:
    """(P10, P90) of measured over estimated rate in the class of this estimate. [1]"""
    if by_rule:
        return constants.residuals["throughput_blind"]
    grade = grade_of(recipe, efficiency_class, sparse=sparse, constants=constants)
    if grade is Grade.EXTRAPOLATED:
        return constants.residuals["throughput_unseen"]
    return constants.residuals["throughput_moe" if sparse else "throughput_dense"]


def _figures(
    workload: TrainingWorkload,
    plan: _Plan,
    accelerator: Accelerator,
    architecture: Architecture,
    accelerators: int,
    constants: TrainingConstants,
) -> tuple[Mapping[str, Band], tuple[Step, ...]]:
    grade = _grade(plan, constants)
    low, high = rate_residuals(
        plan.recipe,
        int(plan.row["efficiency_class"]),
        sparse=plan.row["experts"] > 0,
        by_rule=plan.by_rule,
        constants=constants,
    )
    if workload.mfu is not None:
        low = high = 1.0

    def rate(value: float, unit: str) -> Band:
        return Band(value * low, value, value * high, unit, grade)

    def duration(value: float, unit: str) -> Band:
        return Band(value / high, value, value / low, unit, grade)

    def exact(value: float, unit: str) -> Band:
        return Band(value, value, value, unit, grade)

    units = float(plan.time.tokens[0])
    samples = plan.row["sample_flops"] > 0
    unit = "samples/s" if samples else "tokens/s"
    per_second = units / plan.step_time
    model_flops = float(plan.time.model_flops[0]) * accelerators
    peak = plan.row["peak_16"] * accelerators
    mfu = workload.mfu or model_flops / (plan.step_time * peak)
    figures = {
        "step_time": duration(plan.step_time, "s"),
        "throughput": rate(per_second, unit),
        "throughput_per_accelerator": rate(per_second / accelerators, unit),
        "mfu": rate(mfu, "1"),
    }
    steps = _trace(plan, accelerator, accelerators, units, per_second, mfu)
    total = workload.samples if samples else workload.tokens
    if total is not None:
        useful = per_second * workload.packing
        seconds = total / useful
        work = total / workload.packing
        flops = (
            work * plan.row["sample_flops"]
            if samples
            else work * 2.0 * plan.row["passes"] * active_parameters(architecture)
        )
        hours = seconds / HOUR
        figures |= {
            "training_flops": exact(flops, "FLOP"),
            "training_time": duration(seconds, "s"),
            "accelerator_hours": duration(hours * accelerators, "h"),
        }
        wall = wall_seconds(
            workload, seconds, accelerators, plan.row["node"],
            plan.row["adapter_parameters"] or total_parameters(architecture),
        )  # fmt: skip
        if wall is not None:
            figures["wall_time"] = duration(wall, "s")
        if accelerator.tdp is not None:
            energy = hours * accelerators * accelerator.tdp * POWER_SHARE / 1000.0
            figures["energy"] = duration(energy, "kWh")
        steps += (
            Step(
                "training_flops",
                "k N D, k = 6; 4 with frozen weights; 8 with a reference model",
                {"k": 2.0 * plan.row["passes"], "N": active_parameters(architecture), "D": work},
                flops,
                "FLOP",
            ),
            Step(
                "training_time",
                "D / (tokens/s x packing)",
                {"D": total, "tokens/s": per_second, "packing": workload.packing},
                seconds,
                "s",
            ),
            Step(
                "accelerator_hours",
                "n t / 3600",
                {"n": accelerators, "t": seconds},
                hours * accelerators,
                "h",
            ),
        )
    return figures, steps


def wall_seconds(
    workload: TrainingWorkload, seconds: float, accelerators: int, node: float, trained: float
) -> float | None:
    """Expected time with hardware failures and checkpoints; None where the job would never end. [s]

    `node`: accelerators in one; `trained`: parameters that a checkpoint holds.
    """
    try:
        return plan_checkpoints(
            work_s=seconds,
            nodes=max(math.ceil(accelerators / node), 1),
            checkpoint_s=checkpoint_seconds(trained, workload.storage_bandwidth),
        ).wall
    except InfeasibleError:
        return None


def _trace(
    plan: _Plan,
    accelerator: Accelerator,
    accelerators: int,
    units: float,
    per_second: float,
    mfu: float,
) -> tuple[Step, ...]:
    memory, time, row = plan.memory, plan.time, plan.row
    local = float(memory.local_parameters[0])
    parts = {name: float(getattr(memory, name)[0]) for name in PART_NAMES}
    micro_steps = max(row["global_batch"] / (row["data"] * row["micro_batch"]), 1.0)
    link, network, bandwidth = row["link"], row["network"], row["hbm_bandwidth"]
    busy = {name: float(getattr(time, name)[0]) for name in _TIME_FORMULAS}
    steps = [
        Step(
            "local_parameters",
            "N / (t p e)",
            {"t": row["tensor"], "p": row["pipeline"], "e": row["expert"]},
            local,
            "parameters",
        )
    ]
    memory_inputs: Mapping[str, Mapping[str, float | str]] = {
        "weights": {"P": local, "bytes": row["weight_bytes"]},
        "gradients": {"P": local, "bytes": row["gradient_bytes"]},
        "optimizer": {"P": local, "bytes": row["state_bytes"]},
        "activations": {
            "b": row["micro_batch"],
            "s": row["sequence"],
            "recompute": plan.recipe.recompute,
        },
        "logits": {"V": row["vocab"], "kept": row["logits_kept"]},
    }
    for name, inputs in memory_inputs.items():
        steps.append(Step(name, _MEMORY_FORMULAS[name], inputs, parts[name], "B"))
    steps.append(Step("memory", "sum of the parts", parts, float(memory.total[0]), "B"))
    batches = {"B": row["global_batch"], "d": row["data"], "b": row["micro_batch"]}
    steps.append(Step("micro_steps", "B / (d b)", batches, micro_steps, "1"))
    time_inputs: Mapping[str, Mapping[str, float | str]] = {
        "matrix": {"peak": row["peak"]},
        "attention": {"peak": row["peak_16"]},
        "elementwise": {"bandwidth": bandwidth},
        "tensor_communication": {"link": link},
        "expert_communication": {"e": row["expert"]},
        "context_communication": {"c": row["context"]},
        "bubble": {"p": row["pipeline"], "v": row["virtual"], "m": micro_steps},
        "data_communication": {"network": network},
        "update": {"bandwidth": bandwidth},
        "other": {"n": accelerators},
    }
    for name, inputs in time_inputs.items():
        steps.append(Step(name, _TIME_FORMULAS[name], inputs, busy[name], "s"))
    if row["commodity"]:
        share = float(commodity_efficiency(np.array([float(accelerators)]))[0])
        curve = "1/2/4/8/16: 1.0/0.9/0.8/0.7/0.53"
        steps.append(Step("cluster_efficiency", curve, {"n": accelerators}, share, "1"))
    formula = "sum of the parts"
    if plan.by_rule:
        formula = "tokens / (n x rate of the plain rule): framework and layout are unknown"
    elif plan.step_time != float(time.total[0]):
        formula = "k N tokens / (n x peak x MFU), or reading the data"
    peak = {"peak": row["peak_16"], "n": accelerators}
    steps += [
        Step("step_time", formula, {"parts": float(time.total[0])}, plan.step_time, "s"),
        Step("throughput", "tokens / step time", {"tokens": units}, per_second, "1/s"),
        Step("mfu", "model FLOP / (step time x n x peak)", peak, mfu, "1"),
    ]
    return tuple(steps)


def _saturation(plan: _Plan, memory: float) -> Saturation:
    hardware = float(plan.time.hardware_flops[0]) / (plan.step_time * plan.row["peak_16"])
    bandwidth = float(plan.time.hbm_bytes[0]) / (plan.step_time * plan.row["hbm_bandwidth"])
    return Saturation(min(hardware, 1.0), min(memory, 1.0), min(bandwidth, 1.0))
