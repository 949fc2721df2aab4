"""What to say beside a training estimate: traps, software first, assumptions that matter, ways to make it fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.messages import Message, msg
from planning.estimators.architecture import total_parameters
from planning.estimators.training_candidates import (
    candidate_row,
    filling_steps,
    recompute_columns,
    sharding_columns,
    stack,
)
from planning.estimators.training_constants import TrainingConstants
from planning.estimators.training_memory import training_memory
from planning.estimators.training_time import TrainingTime, training_time
from planning.estimators.training_workload import Cluster, Layout, Recipe, TrainingWorkload
from planning.estimators.types import Accelerator, Architecture, Band, Saturation

YEAR = 365.25 * 86_400.0
MATTERS = 0.10  # an assumption that moves the answer by more is named
IDLE = 0.25  # share of a step in which stages wait, from which on it is said
WORTH_SAYING_UNTIL = 100e9  # [parameters] below it, returns diminish beyond eight accelerators


def warnings(
    workload: TrainingWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    accelerators: int,
    figures: Mapping[str, Band],
    saturation: Saturation,
    *,
    reachable: float | None = None,
) -> tuple[Message, ...]:
    """Traps that this plan is near, and what software could gain before hardware is bought.

    `reachable`: MFU of the same job in a named framework, where the estimate knows none. [1]
    """
    found: list[Message] = []
    parameters = total_parameters(architecture)
    mfu = figures["mfu"].p50
    if accelerator.sparsity_factor > 1.0:
        found.append(
            msg(
                "Data sheets of %(accelerator)s also print a sparse rate, %(factor)s x the dense one. Training uses "
                "the dense rate, as counted here.",
                accelerator=accelerator.name,
                factor=accelerator.sparsity_factor,
            )
        )
    if mfu > 0.55:
        found.append(
            msg(
                "MFU of %(mfu)s %% is above what large published runs reach (35 to 55 %%).",
                mfu=round(100 * mfu, 1),
            )
        )
    elif max(mfu, reachable or 0.0) < 0.30 and not workload.flops_per_sample:
        found.append(
            msg(
                "MFU of %(mfu)s %%: below 30 %%, money burns. Look at software before buying.",
                mfu=round(100 * mfu, 1),
            )
        )
    if workload.method in ("pretrain", "full") and 6e9 <= parameters <= 8e9:
        found.append(
            msg(
                "70 GB is not comfortable for a 7 B model: full training with AdamW takes 16 bytes a parameter, "
                "112 GB before activations. 70 GB holds only with sharding, 8-bit optimiser states or LoRA."
            )
        )
    if "training_time" in figures and accelerators == 1 and mfu > 0.0:
        years = figures["training_time"].p50 / YEAR
        if years > 1.0:
            found.append(
                msg(
                    "One accelerator takes %(years)s years. Taking its peak for the rate it reaches would say "
                    "%(wrong)s: that is the trap behind “4.4 years” for 7 B and 1 T tokens on an A100.",
                    years=round(years, 1),
                    wrong=round(years * mfu, 1),
                )
            )
    if accelerators > 8 and parameters < WORTH_SAYING_UNTIL:
        found.append(
            msg(
                "Beyond 8 accelerators returns diminish for models under 100 B parameters: each one more adds less "
                "than the last."
            )
        )
    found += _software_first(workload, accelerator, saturation)
    return tuple(found)


def name_the_framework(mfu: float, framework: str, named: float | None) -> tuple[Message, ...]:
    """That a rate without framework and layout is that of runs in general, and what naming them does.

    `named`: MFU of the same job in `framework`. The two are told as a ratio, which a calibration leaves as it is. [1]
    """
    if named is None or mfu <= 0.0:
        return (
            msg(
                "Neither framework nor layout was told: the rate is that of published runs in general. Naming the "
                "framework makes the estimate surer."
            ),
        )
    return (
        msg(
            "Neither framework nor layout was told: the rate is that of published runs in general. Naming the "
            "framework makes the estimate surer: with framework %(framework)s the same job is estimated at "
            "%(times)s times this rate.",
            framework=framework,
            times=round(named / mfu, 2),
        ),
    )


def filled_pipeline(layout: Layout, batches: tuple[int, int]) -> tuple[Message, ...]:
    """Which batch was taken to fill the stages of a layout that came without one; nothing where there are no stages."""
    if layout.pipeline == 1:
        return ()
    micro, whole = batches
    return (
        msg(
            "No global batch was told: %(batch)s sequences a step are taken, %(steps)s micro-batches for each data "
            "rank, so that the %(stages)s pipeline stages are busy.",
            batch=whole,
            steps=whole // (micro * layout.data),
            stages=layout.pipeline,
        ),
    )


def idle_stages(row: Mapping[str, float], time: TrainingTime) -> tuple[Message, ...]:
    """That a batch is too small for its pipeline, how long stages stand idle, and the batch that would fill it."""
    idle = float(time.bubble[0]) / float(time.total[0])
    if idle <= IDLE:
        return ()
    text = msg(
        "The pipeline stands idle %(share)s %% of the time: a global batch of %(batch)s sequences is too small for "
        "%(stages)s stages. %(filled)s would fill it.",
        share=round(100 * idle),
        batch=int(row["global_batch"]),
        stages=int(row["pipeline"]),
        filled=int(row["data"] * row["micro_batch"]) * filling_steps(int(row["pipeline"])),
    )
    return (text,)


def _software_first(
    workload: TrainingWorkload, accelerator: Accelerator, saturation: Saturation
) -> list[Message]:
    found: list[Message] = []
    full = accelerator.peak_flops.get("fp32")
    half = accelerator.peak_flops.get("bf16") or accelerator.peak_flops.get("fp16")
    if workload.precision == "fp32" and full and half and half > full:
        found.append(
            msg(
                "Software first: mixed precision would raise the peak rate %(gain)s x without new hardware.",
                gain=round(half / full, 1),
            )
        )
    by_sample = workload.flops_per_sample is not None
    if (
        workload.micro_batch
        and not by_sample
        and workload.micro_batch * workload.sequence_length < 1024
    ):
        found.append(
            msg(
                "Software first: %(tokens)s tokens a pass leave the matrix units idle. Use a larger micro batch, or "
                "pack short sequences.",
                tokens=workload.micro_batch * workload.sequence_length,
            )
        )
    if workload.global_batch and workload.micro_batch == workload.global_batch > 1:
        found.append(
            msg(
                "Software first: without gradient accumulation the batch must fit memory at once. A smaller micro "
                "batch with accumulation needs less."
            )
        )
    if workload.packing < 0.8:
        found.append(
            msg(
                "Software first: %(padding)s %% of processed tokens are padding. Packing sequences saves that.",
                padding=round(100 * (1 - workload.packing)),
            )
        )
    if saturation.memory < 0.4:
        found.append(
            msg(
                "%(share)s %% of the memory is asleep: a larger micro batch, less recomputation or a smaller card "
                "would use it.",
                share=round(100 * (1 - saturation.memory)),
            )
        )
    return found


_ALTERNATIVES: Mapping[str, tuple[object, ...]] = {
    "recompute": ("none", "selective", "full"),
    "sharding": ("none", "zero3"),
    "chunked_loss": (False, True),
    "pure_16bit": (False, True),
    "optimizer": ("adamw", "adamw_8bit"),
    "flash_attention": (True, False),
    "fused_kernels": (True, False),
}


def assumption_messages(
    recipe: Recipe,
    row: dict[str, float],
    accelerator: Accelerator,
    architecture: Architecture,
    constants: TrainingConstants,
) -> tuple[Message, ...]:
    """Every choice that was not given; those that move memory or time by more than 10 % with their effect."""
    tried = [
        (field, option)
        for field in recipe.defaulted
        for option in _ALTERNATIVES.get(field, ())
        if option != getattr(recipe, field)
    ]
    rows = [
        _changed_row(_with(recipe, {field: option}), row, accelerator, architecture)
        for field, option in tried
    ]
    together = stack([row, *rows])
    memory = training_memory(together, constants).total
    seconds = training_time(together, constants).total
    more, slower = memory[1:] / memory[0] - 1.0, seconds[1:] / seconds[0] - 1.0
    found: list[Message] = []
    for field in recipe.defaulted:
        value = getattr(recipe, field)
        effects = [
            (option, float(more[i]), float(slower[i]))
            for i, (name, option) in enumerate(tried)
            if name == field and (abs(more[i]) > MATTERS or abs(slower[i]) > MATTERS)
        ]
        if not effects:
            found.append(msg("%(field)s: %(value)s is assumed", field=field, value=str(value)))
        for option, memory_effect, time_effect in effects:
            found.append(
                msg(
                    "%(field)s: %(value)s is assumed; with %(option)s memory would change by %(memory)s %% and step "
                    "time by %(time)s %%",
                    field=field,
                    value=str(value),
                    option=str(option),
                    memory=round(100 * memory_effect),
                    time=round(100 * time_effect),
                )
            )
    return tuple(found)


def _with(recipe: Recipe, fields: Mapping[str, Any]) -> Recipe:
    return replace(recipe, **fields)


def _changed_row(
    recipe: Recipe, row: dict[str, float], accelerator: Accelerator, architecture: Architecture
) -> dict[str, float]:
    fresh = candidate_row(
        recipe,
        accelerator,
        architecture,
        Layout(),
        Cluster(accelerators_per_node=int(row["node"])),
        micro_batch=1,
        global_batch=1,
    )
    kept = (
        "tensor", "pipeline", "data", "context", "expert", "virtual", "micro_batch", "global_batch",
        "sample_flops", "link", "network", "domain", "commodity",
    )  # fmt: skip
    return fresh | {name: row[name] for name in kept}


def tight(lacking: float, searched: bool) -> tuple[Message, ...]:
    """That the P90 of memory is above the capacity, by how much, and what helps; nothing where it is not."""
    if lacking <= 0.0:
        return ()
    lack = round(lacking / 1e9, 1)
    if searched:
        return (
            msg(
                "Tight: at the P90 %(lack)s GB are lacking on each accelerator, and no layout over this number is "
                "surer. Take more accelerators, or try it before you rely on it.",
                lack=lack,
            ),
        )
    return (
        msg(
            "Tight: at the P90 %(lack)s GB are lacking on each accelerator. More recomputation, a smaller micro batch "
            "or more sharding gives room.",
            lack=lack,
        ),
    )


def remedies(
    recipe: Recipe,
    row: dict[str, float],
    accelerator: Accelerator,
    architecture: Architecture,
    constants: TrainingConstants,
) -> tuple[Message, ...]:
    """What is lacking, then the three cheapest changes that would each make the job fit.

    Cheapest by accelerator-time per token; changes that give up something else (the method, the optimiser) come last.
    """
    capacity = accelerator.visible_bytes
    total = float(training_memory(stack([row]), constants).total[0])
    lacking = msg(
        "%(lack)s GB are lacking on each accelerator: %(need)s GB needed, %(have)s GB there.",
        lack=round((total - capacity) / 1e9, 1),
        need=round(total / 1e9, 1),
        have=round(capacity / 1e9, 1),
    )
    options = _options(recipe, row, accelerator, architecture)
    c = stack([option for _, option, _ in options])
    memory = training_memory(c, constants).total
    time = training_time(c, constants)
    cost = time.total * c.accelerators / time.tokens
    order = sorted(range(len(options)), key=lambda i: (options[i][2], float(cost[i])))
    working = [i for i in order if memory[i] <= capacity]
    more = [i for i in working if options[i][2] == 1]  # of several counts, the smallest is enough
    smallest = min(more, key=lambda i: float(c.accelerators[i]), default=None)
    shown = [i for i in working if options[i][2] != 1 or i == smallest]
    return (lacking, *(options[i][0] for i in shown[:3]))


def _options(
    recipe: Recipe, row: dict[str, float], accelerator: Accelerator, architecture: Architecture
) -> list[tuple[Message, dict[str, float], int]]:
    """Changes to try: what to say, the columns, and a rank (0 free, 1 more hardware, 2 another recipe)."""
    options: list[tuple[Message, dict[str, float], int]] = []

    def recipe_change(text: Message, rank: int, **fields: object) -> None:
        changed = _changed_row(_with(recipe, fields), row, accelerator, architecture)
        options.append((text, changed, rank))

    full = recompute_columns(replace(recipe, recompute="full"))
    sharded = sharding_columns("zero3")
    chunked = {"logits_kept": 0.0}
    small = {"micro_batch": 1.0}
    ranks = row["data"] * row["context"]
    if row["logits_kept"]:
        options.append((msg("Use a fused or chunked loss."), row | chunked, 0))
    if row["micro_batch"] > 1:
        options.append((msg("Set the micro batch to 1 and accumulate."), row | small, 0))
    if not row["activation_full"]:
        options.append((msg("Recompute all activations."), row | full, 0))
    if ranks > 1 and not row["shard_weights"]:
        options.append(
            (msg("Shard weights, gradients and states (ZeRO-3, FSDP)."), row | sharded, 0)
        )
        both = row | sharded | full | small | chunked
        options.append(
            (msg("Shard everything, recompute everything, micro batch 1, chunked loss."), both, 0)
        )
    options.append(
        (msg("Recompute everything, micro batch 1, chunked loss."), row | full | small | chunked, 0)
    )
    for factor in (2, 4, 8, 16, 32, 64):
        more = row | sharded | full | small | chunked | {"data": row["data"] * factor}
        more["global_batch"] = max(row["global_batch"], more["data"])
        count = int(row["tensor"] * row["pipeline"] * more["data"] * row["context"])
        text = msg(
            "Use %(count)s accelerators with everything sharded and recomputed.", count=count
        )
        options.append((text, more, 1))
    if recipe.method in ("pretrain", "full", "dpo"):
        tight = {"sharding": "zero3", "recompute": "full", "chunked_loss": True}
        if recipe.optimizer == "adamw":
            recipe_change(
                msg("Keep optimiser states in 8 bit."), 2, optimizer="adamw_8bit", **tight
            )
        if not recipe.pure_16bit:
            recipe_change(
                msg("Train in pure BF16: 8 bytes a parameter, with some loss of accuracy."),
                2,
                pure_16bit=True,
                gradient_bytes=2.0,
                **tight,
            )
        recipe_change(
            msg("Keep optimiser states in host memory (slow)."), 2, offload="optimizer", **tight
        )
    if recipe.method == "full":
        adapters = {"lora_targets": ("q", "k", "v", "o"), "lora_rank": 16}
        recipe_change(msg("Train adapters only (LoRA)."), 2, method="lora", **adapters)
        recipe_change(
            msg("Train adapters on 4-bit weights (QLoRA)."), 2, method="qlora", **adapters
        )
    if recipe.method == "lora":
        recipe_change(msg("Train adapters on 4-bit weights (QLoRA)."), 2, method="qlora")
    return options
