"""The best legal way to split a training job over accelerators, and why the others lose.

Every layout is a column entry; legality, memory and time of all of them are computed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.errors import require_at_least
from core.messages import Message, msg
from planning.estimators.training_candidates import (
    Array,
    recompute_columns,
    sharding_columns,
    stack,
)
from planning.estimators.training_constants import TrainingConstants, training_constants
from planning.estimators.training_memory import memory_bounds, training_memory
from planning.estimators.training_time import training_time
from planning.estimators.training_workload import Layout, Recipe
from planning.estimators.types import InfeasibleError

ABOUT_LEAST = (
    1.02  # memory over the least of a fitting layout, within which the faster one is taken
)
CHUNK = 16_384  # candidates computed together: small enough to stay in cache
MICRO_BATCHES = (1, 2, 4, 8, 16)
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What the search may choose. Empty: keep what the workload says."""

    tensor_beyond_node: bool = False
    largest_tensor: int = 64
    context: tuple[int, ...] = (1,)
    virtual_stages: tuple[int, ...] = (1, 2, 4)
    micro_batches: tuple[int, ...] = MICRO_BATCHES
    recompute: tuple[str, ...] = ()
    sharding: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedLayout:
    """One layout with what it takes. [B], [s], [tokens/s] of all accelerators."""

    layout: Layout
    micro_batch: int
    global_batch: int
    recompute: str
    sharding: str
    memory: float
    step_time: float
    rate: float
    reason: Message | None = None


@dataclass(frozen=True, slots=True)
class LayoutSearch:
    """The outcome of a search; `best` is None where nothing fits."""

    best: RankedLayout | None
    losers: tuple[RankedLayout, ...]
    considered: int
    illegal: int
    too_large: int
    least_memory: RankedLayout  # legal, whether it fits or not
    reasons: tuple[Message, ...]
    price_of_room: Message | None = (
        None  # what a layout whose P90 fits costs against the fastest that only may fit
    )


def evaluate_candidates(
    rows: Sequence[dict[str, float]],
    index: Index,
    columns: dict[str, Array],
    constants: TrainingConstants | None = None,
) -> dict[str, Array]:
    """Memory, step time and rate of many candidates by the same formulas as one estimate.

    Parameters
    ----------
    rows
        Distinct bases from ``candidate_row``: one for each model, accelerator, precision and recipe.
    index
        Which base each candidate starts from, shape (n,).
    columns
        What varies beside: any column of ``Candidates`` (layout, batches), each of shape (n,).

    Returns
    -------
    dict
        ``memory`` [B], ``step_time`` [s], ``rate`` [tokens/s of all accelerators], ``mfu`` [1], ``fits`` and ``sure``
        [0 or 1: the P50, the P90 of memory is held], each of shape (n,).
    """
    constants = constants or training_constants()
    base = stack(rows)
    size = len(index)
    out = {name: np.empty(size) for name in ("memory", "step_time", "rate", "mfu", "fits", "sure")}
    for start in range(0, size, CHUNK):
        part = slice(start, min(start + CHUNK, size))
        chosen = base if len(rows) == 1 else base.take(index[part])
        c = chosen.with_columns(**{name: column[part] for name, column in columns.items()})
        memory, time = training_memory(c, constants), training_time(c, constants)
        out["memory"][part] = memory.total
        out["step_time"][part] = time.total
        out["rate"][part] = time.tokens / time.total
        out["mfu"][part] = time.model_flops / time.total / c.peak_16
        out["fits"][part] = memory.total <= c.visible_bytes
        out["sure"][part] = memory_bounds(memory, constants)[1] <= c.visible_bytes
    return out


def layout_grid(
    base: dict[str, float], recipe: Recipe, accelerators: int, space: SearchSpace
) -> tuple[dict[str, Array], Mask]:
    """All splits of `accelerators`, and which are legal. Columns of shape (n,).

    Legal: the product is the count; tensor parallelism within a node unless told otherwise and dividing heads and
    feed-forward width; stages dividing layers; experts dividing their number and the data ranks; the global batch a
    multiple of data ranks × micro batch.
    """
    require_at_least("accelerators", accelerators, 1)
    divisors = [n for n in range(1, accelerators + 1) if accelerators % n == 0]
    layers, experts = int(base["layers"]), int(base["experts"])
    limit = space.largest_tensor if space.tensor_beyond_node else int(base["node"])
    tensor = [n for n in divisors if n <= limit]
    pipeline = [n for n in divisors if n <= layers]
    expert = [n for n in _divisors(experts) if n <= accelerators] if experts else [1]
    axes = [tensor, pipeline, space.context, expert, space.virtual_stages, space.micro_batches]
    recompute = space.recompute or ("",)
    sharding = space.sharding or ("",)
    grids = np.meshgrid(*axes, np.arange(len(recompute)), np.arange(len(sharding)), indexing="ij")
    t, p, cp, e, v, b, r, s = (grid.reshape(-1).astype(np.float64) for grid in grids)
    replica = t * p * cp
    data = np.floor(accelerators / replica)
    whole = data >= 1.0
    data = np.maximum(data, 1.0)
    batch = base["global_batch"]
    legal = (
        whole
        & (replica * data == accelerators)
        & (base["heads"] % t == 0)
        & (base["ffn_single"] % t == 0)
        & (layers % (p * v) == 0)
        & ((v == 1) | (p > 1))
        & (batch % (data * b) == 0)
        & ((data * cp) % e == 0)
        & (base["sequence"] % cp == 0)
    )
    columns = {
        "tensor": t,
        "pipeline": p,
        "context": cp,
        "expert": e,
        "virtual": v,
        "data": data,
        "micro_batch": b,
    }
    columns |= _choices(
        [recompute_columns(replace(recipe, recompute=o)) for o in space.recompute], r
    )
    columns |= _choices([sharding_columns(option) for option in space.sharding], s)
    columns["_recompute"], columns["_sharding"] = r, s
    return columns, legal


def search_layouts(
    base: dict[str, float],
    recipe: Recipe,
    accelerators: int,
    *,
    space: SearchSpace | None = None,
    constants: TrainingConstants | None = None,
    losers: int = 5,
) -> LayoutSearch:
    """The fastest legal layout whose P90 of memory fits, else whose P50 does, and what is wrong with the rest.

    Raises
    ------
    InfeasibleError
        If no split of this count is legal at all.
    """
    space = space or SearchSpace()
    columns, legal = layout_grid(base, recipe, accelerators, space)
    considered = int(legal.size)
    kept = np.flatnonzero(legal)
    if not kept.size:
        raise InfeasibleError(
            msg(
                "No split over %(count)s accelerators is legal: layers (%(layers)s), heads (%(heads)s) and the "
                "global batch (%(batch)s) must divide.",
                count=accelerators,
                layers=int(base["layers"]),
                heads=int(base["heads"]),
                batch=int(base["global_batch"]),
            )
        )
    columns = {name: column[kept] for name, column in columns.items()}
    numbers = {name: column for name, column in columns.items() if not name.startswith("_")}
    result = evaluate_candidates([base], np.zeros(kept.size, dtype=np.intp), numbers, constants)

    def ranked(i: int, reason: Message | None = None) -> RankedLayout:
        names = ("tensor", "pipeline", "data", "context", "expert", "virtual")
        return RankedLayout(
            layout=Layout(*(int(columns[name][i]) for name in names)),
            micro_batch=int(columns["micro_batch"][i]),
            global_batch=int(base["global_batch"]),
            recompute=space.recompute[int(columns["_recompute"][i])]
            if space.recompute
            else recipe.recompute,
            sharding=space.sharding[int(columns["_sharding"][i])]
            if space.sharding
            else recipe.sharding,
            memory=float(result["memory"][i]),
            step_time=float(result["step_time"][i]),
            rate=float(result["rate"][i]),
            reason=reason,
        )

    fits = result["fits"] > 0
    least = ranked(int(np.argmin(result["memory"])))
    too_large = int(np.count_nonzero(~fits))
    summary = [
        msg(
            "%(illegal)s of %(considered)s layouts do not divide the model, the batch or the count.",
            illegal=considered - kept.size,
            considered=considered,
        ),
        msg(
            "%(count)s legal layouts need more memory than the accelerator has.",
            count=too_large,
        ),
    ]
    if not fits.any():
        return LayoutSearch(
            None, (), considered, considered - kept.size, too_large, least, tuple(summary)
        )
    chosen = trusted(fits, result["sure"] > 0, result["memory"])
    rate = np.where(chosen, result["rate"], -1.0)
    order = np.argsort(-rate, kind="stable")
    best = int(order[0])
    shown = _distinct(columns, order[: int(np.count_nonzero(chosen))], best, losers)
    others = tuple(ranked(i, _why(base, columns, result, best, i)) for i in shown)
    tempting = _fastest_too_large(result, fits, best)
    if tempting is not None:
        lack = (result["memory"][tempting] - base["visible_bytes"]) / 1e9
        others += (
            ranked(
                tempting,
                msg(
                    "%(gain)s %% faster, but %(lack)s GB short of memory on each accelerator",
                    gain=round(
                        100 * (float(result["rate"][tempting]) / float(rate[best]) - 1.0), 1
                    ),
                    lack=round(float(lack), 1),
                ),
            ),
        )
    return LayoutSearch(
        ranked(best),
        others,
        considered,
        considered - kept.size,
        too_large,
        least,
        tuple(summary),
        _price_of_room(result, fits, best),
    )


def trusted(fits: Mask, sure: Mask, memory: Array) -> Mask:
    """The layouts to choose the fastest from, over the last axis: those whose P90 fits; where there are none, those of
    the fitting ones that need about the least, for speed is worth little to a run that stops for want of memory."""
    least = np.where(fits, memory, np.inf).min(axis=-1, keepdims=True)
    return np.where(sure.any(axis=-1, keepdims=True), sure, fits & (memory <= ABOUT_LEAST * least))


def _price_of_room(result: dict[str, Array], fits: Mask, best: int) -> Message | None:
    """How much faster the fastest layout would be that fits by its P50 alone. None where that is `best` itself."""
    if not result["sure"][best]:
        return None
    fastest = float(np.max(np.where(fits, result["rate"], -1.0)))
    gain = fastest / float(result["rate"][best]) - 1.0
    if gain <= 0.0:
        return None
    return msg(
        "The layout is taken whose memory fits at the P90 too; one that fits only at the P50 would be %(gain)s %% "
        "faster.",
        gain=round(100 * gain, 1),
    )


def _fastest_too_large(result: dict[str, Array], fits: Mask, best: int) -> int | None:
    faster = ~fits & (result["rate"] > result["rate"][best])
    if not faster.any():
        return None
    return int(np.argmax(np.where(faster, result["rate"], -1.0)))


def _distinct(columns: dict[str, Array], order: Index, best: int, limit: int) -> list[int]:
    """The best of each other split (tensor, pipeline, context, expert), fastest first."""
    names = ("tensor", "pipeline", "context", "expert")
    seen = {tuple(columns[name][best] for name in names)}
    shown: list[int] = []
    for i in order:
        key = tuple(columns[name][i] for name in names)
        if key not in seen:
            seen.add(key)
            shown.append(int(i))
            if len(shown) == limit:
                break
    return shown


def _why(
    base: dict[str, float], columns: dict[str, Array], result: dict[str, Array], best: int, i: int
) -> Message:
    """What costs the layout most, compared with the best."""
    numbers = {n: c[[best, i]] for n, c in columns.items() if not n.startswith("_")}
    time = training_time(stack([base]).with_columns(**numbers), training_constants())
    slower = round(100.0 * (1.0 - float(result["rate"][i] / result["rate"][best])), 1)
    causes = {
        "tensor": time.tensor_communication,
        "bubble": time.bubble,
        "data": time.data_communication,
        "expert": time.expert_communication,
        "context": time.context_communication,
        "matrix": time.matrix,
    }
    growth = {name: float(part[1] - part[0]) for name, part in causes.items()}
    worst = max(growth, key=lambda name: growth[name])
    if slower < 0.05:
        return msg("as fast, but needs no less memory")
    if worst == "tensor":
        return msg("%(slower)s %% slower: tensor-parallel all-reduces", slower=slower)
    if worst == "bubble":
        return msg("%(slower)s %% slower: pipeline bubble", slower=slower)
    if worst == "data":
        return msg("%(slower)s %% slower: gradient and weight traffic not hidden", slower=slower)
    if worst == "expert":
        return msg("%(slower)s %% slower: token exchange between experts", slower=slower)
    if worst == "context":
        return msg("%(slower)s %% slower: keys and values of other sequence parts", slower=slower)
    return msg("%(slower)s %% slower: smaller matrices are less efficient", slower=slower)


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _choices(columns: Sequence[dict[str, float]], index: Array) -> dict[str, Array]:
    """Columns of an option list, by the option that each candidate takes."""
    chosen = index.astype(np.intp)
    names = columns[0] if columns else {}
    return {name: np.array([option[name] for option in columns])[chosen] for name in names}
