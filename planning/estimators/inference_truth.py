"""Rows of published inference measurements, read into candidates. A row that cannot be read says why.

Fields: model, arch, precision {weights, kv}, hardware {gpu, count, tp, pp}, engine {name, version}, workload
{input_len, output_len, concurrency, attention_dp, moe_ep, ...}, measured, row_class, suspect. All are optional.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.errors import DomainError, InputError
from planning.estimators.architecture import (
    architecture_from_count,
    count_from_name,
    validate,
)
from planning.estimators.inference_candidates import (
    Candidates,
    candidates,
    engine_index,
    kv_index,
    weights_index,
)
from planning.estimators.precision import (
    KV_BYTES,
    compute_rate,
    default_kv_dtype,
    usual_dtype,
)
from planning.estimators.types import (
    Accelerator,
    Architecture,
    LatentAttention,
    MixtureOfExperts,
    StateSpace,
)

Row = Mapping[str, Any]

ResolveAccelerator = Callable[[str], Accelerator]  # raises DomainError for a card it does not know
ResolveArchitecture = Callable[
    [str], Architecture
]  # raises DomainError for a model it does not know

# Offline runs of the TensorRT-LLM performance overview: requests by (input, output) length. Source: that document,
# section "Preparing a Dataset" (num_requests), the same from v0.13 to v1.0.
_FLOOD_REQUESTS = {
    (128, 128): 30_000,
    (128, 2048): 3_000,
    (128, 4096): 1_500,
    (1000, 2000): 1_500,
    (2048, 128): 3_000,
    (2048, 2048): 1_500,
    (5000, 500): 1_500,
    (1000, 1000): 3_000,
    (500, 2000): 3_000,
    (20_000, 2000): 1_000,
}


USUAL_HEAD = 128  # size of an attention head
USUAL_INPUT, USUAL_OUTPUT = 1024.0, 256.0  # tokens of a request, where a row tells none
SERVER_SHARE = 0.85  # of the offline rate, under a latency bound (MLPerf: 0.77 to 0.97)
_SUMMARY_LENGTHS = {
    "gptj6b": (924.0, 69.0),
    "mixtral8x7b": (294.0, 146.0),
}  # mean tokens of the MLPerf data sets


class UnreadableRow(ValueError):
    """A row that cannot be estimated; the text is the reason, to be counted."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row, ready to be estimated."""

    architecture: Architecture
    accelerator: Accelerator
    weights: str
    kv: str
    engine: str
    tensor_parallel: int
    pipeline_parallel: int
    attention_data_parallel: int
    expert_parallel: int
    input_tokens: float
    output_tokens: float
    concurrency: float  # per replica
    requests: float
    replicas: float
    share_of_offline: float = 1.0  # what a latency bound leaves of the offline rate


def _plain(text: str) -> str:
    return "".join(ch for ch in text.lower() if ch.isalnum())


def find_architecture(row: Row, resolve: ResolveArchitecture) -> Architecture:
    """The catalogue's shape under the row's model name, else the shape the row carries.

    Raises
    ------
    UnreadableRow
        If neither gives a usable shape.
    """
    name = str(row.get("model") or "")
    try:
        return _with_known_mixer(resolve(name))
    except DomainError:
        given = part_of(row, "arch")
    try:
        return _shape_of(given, name)
    except UnreadableRow:
        raise
    except InputError as error:
        total = number(given.get("params_total"))
        if total is not None:  # a slip in the shape; the size still says most
            return architecture_from_count(
                total, active=number(given.get("params_active")), name=name
            )
        raise UnreadableRow(f"impossible shape: {error.field}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableRow("unreadable shape") from error


def _shape_of(given: Mapping[str, Any], name: str) -> Architecture:
    total, active = number(given.get("params_total")), number(given.get("params_active"))
    if not number(given.get("layers")) or not number(given.get("hidden")):
        named = count_from_name(name) if total is None else None
        if named is not None:
            total, active = named[0], active or named[1]
        if total is None or given.get("flops_per_sample") is not None:
            raise UnreadableRow("no shape")
        return architecture_from_count(total, active=active, name=name)
    layers, hidden = int(given["layers"]), int(given["hidden"])
    usual = max(hidden // int(given.get("head_dim") or USUAL_HEAD), 1)
    heads = int(given.get("heads") or usual)
    shape = Architecture(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=int(given.get("kv_heads") or heads),
        head_dim=int(given.get("head_dim") or max(hidden // heads, 1)),
        ffn=int(given.get("ffn") or 4 * hidden),
        vocab=int(given.get("vocab") or 32_000),
        gated=bool(given.get("gated", True)),
        moe=_experts_of(given, layers, hidden),
        mla=_latent_of(given.get("mla")),
        params_total=total,
        params_active=number(given.get("params_active")),
        causal="encoder" not in str(given.get("note") or ""),
    )
    return validate(_with_known_mixer(shape))


def _experts_of(shape: Mapping[str, Any], layers: int, hidden: int) -> MixtureOfExperts | None:
    given = shape.get("moe")
    if not isinstance(given, Mapping) or not number(given.get("experts")):
        return None
    sparse = whole(given.get("moe_layers"), layers)
    every = layers // sparse if sparse and layers % sparse == 0 else 1
    experts = whole(given["experts"], 1)
    width = number(given.get("expert_ffn"))
    if width is None:  # nearly all parameters of a sparse model are its experts'
        total = number(shape.get("params_total"))
        width = number(shape.get("ffn")) or 4.0 * hidden
        if total is not None:
            width = 0.95 * total / (3.0 * hidden * experts * sparse)
    return MixtureOfExperts(
        experts=experts,
        top_k=whole(given.get("top_k") or given.get("experts_per_token"), 1),
        expert_ffn=max(round(width), 1),
        shared_experts=int(number(given.get("shared_experts")) or 0),
        shared_ffn=int(number(given.get("shared_ffn")) or 0),
        dense_layers=layers - sparse if every == 1 else 0,
        every=every,
    )


def _latent_of(given: Any) -> LatentAttention | None:
    if given is True:
        given = {}
    if not isinstance(given, Mapping):
        return None
    return LatentAttention(
        kv_latent=int(given.get("kv_lora_rank") or 512),
        rope_dim=int(given.get("qk_rope") or given.get("qk_rope_head_dim") or 64),
        q_latent=int(given.get("q_lora") or given.get("q_lora_rank") or 1536),
        nope_dim=int(given.get("qk_nope") or given.get("qk_nope_head_dim") or 128),
        v_dim=int(given.get("v") or given.get("v_head_dim") or 128),
        index_topk=int(given.get("index_topk") or 0),
        index_heads=int(given.get("index_n_heads") or 0),
        index_dim=int(given.get("index_head_dim") or 0),
    )


def _with_known_mixer(shape: Architecture) -> Architecture:
    """Windows and linear layers that the rows' shapes leave out, from the families' published configs."""
    name = _plain(shape.name)
    if name.startswith("gptoss"):  # alternating window of 128
        return replace(shape, sliding_window=128, sliding_layers=shape.layers // 2)
    if name.startswith(("qwen35", "qwen3next")):  # three of four layers use the gated delta rule
        heads, size = 64, 128
        keys, values = 16 * size, heads * size
        params = shape.hidden * (2 * keys + 3 * values)
        state = StateSpace("gated-delta", float(params), float(heads * size * size))
        return replace(shape, linear_layers=shape.layers * 3 // 4, state_space=state)
    return shape


def read_case(
    row: Row, resolve_accelerator: ResolveAccelerator, resolve_architecture: ResolveArchitecture
) -> Case:
    """The row as a case. Raises :class:`UnreadableRow` with the reason."""
    hardware, workload = part_of(row, "hardware"), part_of(row, "workload")
    try:
        accelerator = resolve_accelerator(str(hardware.get("gpu") or ""))
    except DomainError as error:
        raise UnreadableRow("unknown accelerator") from error
    architecture = find_architecture(row, resolve_architecture)
    engine = engine_family(part_of(row, "engine"))
    weights, kv = _precisions(part_of(row, "precision"), engine)
    if not _known_kv(row) and weights in ("fp8", "fp4") and "nvidia_" in str(row.get("id")):
        kv = "fp8"  # NVIDIA's Model Optimizer checkpoints carry FP8 cache scales, which engines follow
    try:
        compute_rate(accelerator, weights)
    except InputError as error:
        raise UnreadableRow("no compute rate for this precision") from error
    usual = _SUMMARY_LENGTHS.get(_plain(str(row.get("model"))), (None, None))
    input_tokens = number(workload.get("input_len")) or usual[0]
    output_tokens = number(workload.get("output_len")) or usual[1]
    if output_tokens is None and "ttft" in str(row.get("row_class")):
        output_tokens = 1.0  # only the first token was timed
    input_tokens, output_tokens = input_tokens or USUAL_INPUT, output_tokens or USUAL_OUTPUT
    tp, pp = whole(hardware.get("tp"), 1), whole(hardware.get("pp"), 1)
    adp = whole(workload.get("attention_dp"), 1)
    ep = whole(workload.get("moe_ep"), 1)
    count = whole(hardware.get("count"), tp * pp * adp)
    adp = min(adp, max(count // (tp * pp), 1))
    if (
        architecture.moe is not None
        and tp * pp * adp < count
        and whole(workload.get("moe_tp"), 1) * ep == count
    ):
        adp = count // (
            tp * pp
        )  # experts over all cards, attention over fewer: the rest are attention replicas
    replicas = max(count // (tp * pp * adp), 1)
    if architecture.moe is not None and engine == "tensorrt-llm-torch" and "moe_ep" not in workload:
        ep, adp, tp = tp, tp, 1  # its published tables run sparse models with attention-DP and EP
    requests = math.inf
    concurrency = number(workload.get("concurrency"))
    if concurrency is None and is_static(row):
        concurrency = 1.0
    if concurrency is None and "perf-overview" in str(row.get("source")):
        requests = float(_FLOOD_REQUESTS.get((int(input_tokens), int(output_tokens)), math.inf))
    return Case(
        architecture=architecture,
        accelerator=accelerator,
        weights=weights,
        kv=kv,
        engine=engine,
        tensor_parallel=tp,
        pipeline_parallel=pp,
        attention_data_parallel=adp,
        expert_parallel=max(ep, 1),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=math.inf if concurrency is None else max(concurrency / replicas, 1.0),
        requests=requests,
        replicas=float(replicas),
        share_of_offline=SERVER_SHARE if workload.get("scenario") == "Server" else 1.0,
    )


def is_static(row: Row) -> bool:
    """Whether the row was measured inside the engine: all requests begin together, and no server stands before it."""
    workload = row.get("workload")
    static = isinstance(workload, Mapping) and workload.get("batching") == "static"
    return static or row.get("row_class") in ("llm-bs1", "llm-ttft-bs1")


def engine_family(engine: Mapping[str, Any]) -> str:
    """TensorRT-LLM changed its runtime from C++ to PyTorch with 0.19; the two schedule differently."""
    name, version = str(engine.get("name") or "").lower(), str(engine.get("version") or "")
    if "tensorrt-llm" in name or name.startswith("trt"):
        old = version.startswith(("0.5", "0.6", "0.7", "0.8", "0.9")) or version.startswith("0.1")
        return "tensorrt-llm" if old and not version.startswith("0.19") else "tensorrt-llm-torch"
    for family in ("vllm", "sglang"):
        if family in name:
            return family
    if "mlperf" in name:
        return "vllm" if "vllm" in version.lower() else "tensorrt-llm"
    return "other"


def _precisions(given: Mapping[str, Any], engine: str) -> tuple[str, str]:
    weights = weights_of(given)
    kv = usual_dtype(str(given.get("kv") or ""))
    return weights, kv if kv in KV_BYTES else default_kv_dtype(weights, engine)


def weights_of(given: Mapping[str, Any]) -> str:
    """The weights' data type, 16 bits when none is told. Raises :class:`UnreadableRow` for one that is not known."""
    told = str(given.get("weights") or "fp16").lower()
    found = usual_dtype(told)
    if found is None:
        raise UnreadableRow(f"unknown precision: {told}")
    return found


def _known_kv(row: Row) -> bool:
    return usual_dtype(str(part_of(row, "precision").get("kv") or "")) in KV_BYTES


def part_of(row: Row, key: str) -> Mapping[str, Any]:
    """A nested object of the row; empty when it is missing or is none."""
    value = row.get(key)
    return value if isinstance(value, Mapping) else {}


def number(value: Any) -> float | None:
    """A positive finite number, also when written as text; else None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) and found > 0 else None


def whole(value: Any, default: int) -> int:
    """A whole number of at least 1; `default` when it is missing or is none."""
    found = number(value)
    return default if found is None else max(int(found), 1)


def as_candidates(cases: Sequence[Case]) -> Candidates:
    """The cases as one batch, in order."""
    shapes, shape_of = _distinct(case.architecture for case in cases)
    cards, card_of = _distinct(case.accelerator for case in cases)

    def column(name: str) -> np.ndarray:
        return np.array([getattr(case, name) for case in cases], dtype=np.float64)

    return candidates(
        shapes,
        cards,
        model=np.array(shape_of),
        accelerator=np.array(card_of),
        weights=np.array([weights_index(case.weights) for case in cases]),
        kv=np.array([kv_index(case.kv) for case in cases]),
        engine=np.array([engine_index(case.engine) for case in cases]),
        tensor_parallel=column("tensor_parallel"),
        pipeline_parallel=column("pipeline_parallel"),
        attention_data_parallel=column("attention_data_parallel"),
        expert_parallel=column("expert_parallel"),
        input_tokens=column("input_tokens"),
        output_tokens=column("output_tokens"),
        concurrency=column("concurrency"),
        requests=column("requests"),
    )


def _distinct(items: Iterable[Any]) -> tuple[list[Any], list[int]]:
    distinct: list[Any] = []
    index = []
    for item in items:
        if item not in distinct:
            distinct.append(item)
        index.append(distinct.index(item))
    return distinct, index
