"""Rows of published inference measurements, read into candidates. A row that cannot be read says why.

Fields: model, arch, precision {weights, kv}, hardware {gpu, count, tp, pp}, engine {name, version}, workload
{input_len, output_len, concurrency, attention_dp, moe_ep, ...}, measured, row_class, suspect. All are optional.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.errors import InputError
from planning.estimators.architecture import architecture_from_count, validate
from planning.estimators.candidates import (
    Candidates,
    candidates,
    engine_index,
    kv_index,
    weights_index,
)
from planning.estimators.precision import (
    KV_BYTES,
    WEIGHT_FORMATS,
    compute_rate,
    default_kv_dtype,
)
from planning.estimators.types import (
    Accelerator,
    Architecture,
    LatentAttention,
    MixtureOfExperts,
    StateSpace,
)

Row = Mapping[str, Any]

# Names that benchmark tables use for a card, by slug. Names not listed are compared with slug and name.
ACCELERATOR_ALIASES = {
    "h100": "nvidia-h100-sxm5-80gb",
    "h100sxm": "nvidia-h100-sxm5-80gb",
    "h100sxm80gb": "nvidia-h100-sxm5-80gb",
    "h10080gb": "nvidia-h100-sxm5-80gb",
    "h100pcie": "nvidia-h100-pcie-80gb",
    "h100nvl": "nvidia-h100-nvl-94gb",
    "h200": "nvidia-h200-sxm5-141gb",
    "h200sxm": "nvidia-h200-sxm5-141gb",
    "h200nvl": "nvidia-h200-nvl-141gb",
    "h800": "nvidia-h800-sxm5-80gb",
    "h20": "nvidia-h20-sxm5-96gb",
    "gh200": "nvidia-gh200-96gb-hbm3",
    "gh20096": "nvidia-gh200-96gb-hbm3",
    "a100": "nvidia-a100-sxm4-80gb",
    "a100sxm": "nvidia-a100-sxm4-80gb",
    "a100sxm80gb": "nvidia-a100-sxm4-80gb",
    "a10080gb": "nvidia-a100-sxm4-80gb",
    "a100sxm40gb": "nvidia-a100-sxm4-40gb",
    "a10040gb": "nvidia-a100-sxm4-40gb",
    "a100pcie": "nvidia-a100-pcie-80gb",
    "a100pcie80gb": "nvidia-a100-pcie-80gb",
    "a100pcie40gb": "nvidia-a100-pcie-40gb",
    "a800": "nvidia-a800-sxm4-80gb",
    "a10g": "nvidia-a10g-aws",
    "b200": "nvidia-b200-sxm6-hgx",
    "b200sxm": "nvidia-b200-sxm6-hgx",
    "b300": "nvidia-b300-sxm-hgx",
    "gb200": "nvidia-gb200-per-gpu-nvl72",
    "gb300": "nvidia-gb300-per-gpu-nvl72",
    "b100": "nvidia-b100-sxm6",
    "rtx6000pro": "nvidia-rtx-pro-6000-blackwell-server-edition",
    "rtxpro6000": "nvidia-rtx-pro-6000-blackwell-server-edition",
    "rtxa6000": "nvidia-rtx-a6000",
    "a6000": "nvidia-rtx-a6000",
    "rtxa5000": "nvidia-rtx-a5000",
    "rtx6000ada": "nvidia-rtx-6000-ada",
    "rtx3090": "nvidia-geforce-rtx-3090",
    "rtx4090": "nvidia-geforce-rtx-4090",
    "rtx5090": "nvidia-geforce-rtx-5090",
    "v100": "nvidia-v100-sxm2-32gb",
    "v100sxm": "nvidia-v100-sxm2-32gb",
    "v100pcie": "nvidia-v100-pcie-32gb",
    "p100": "nvidia-p100-pcie-16gb",
    "mi300x": "amd-instinct-mi300x-oam",
    "mi325x": "amd-instinct-mi325x-oam",
    "mi350x": "amd-instinct-mi350x-oam",
    "mi355x": "amd-instinct-mi355x-oam-liquid",
    "mi250": "amd-instinct-mi250x-oam-2-gcd",
    "mi250x": "amd-instinct-mi250x-oam-2-gcd",
    "mi210": "amd-instinct-mi210",
    "gaudi2": "intel-gaudi-2-oam-hl-225h",
    "gaudi3": "intel-gaudi-3-oam-hl-325l",
}

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


def find_accelerator(accelerators: Mapping[str, Accelerator], name: str) -> Accelerator:
    """The card that a benchmark's `name` means.

    Raises
    ------
    UnreadableRow
        If no card, or more than one kind of memory and form, could be meant.
    """
    key = _plain(name)
    slug = ACCELERATOR_ALIASES.get(key)
    if slug in accelerators:
        return accelerators[slug]
    if (
        key == "gh200144" and "nvidia-gh200-96gb-hbm3" in accelerators
    ):  # the HBM3e variant of the module
        base = accelerators["nvidia-gh200-96gb-hbm3"]
        return replace(base, slug="nvidia-gh200-144gb-hbm3e", hbm_bytes=144e9, hbm_bandwidth=4.9e12)
    if key == "rtx3090ti" and "nvidia-geforce-rtx-3090" in accelerators:
        base = accelerators["nvidia-geforce-rtx-3090"]
        return replace(base, slug="nvidia-geforce-rtx-3090-ti", hbm_bandwidth=1.008e12)
    exact = [a for s, a in accelerators.items() if key in {_plain(s), _plain(a.name)}]
    near = exact or [a for s, a in accelerators.items() if key and key in _plain(s)]
    if not near:
        raise UnreadableRow(f"unknown accelerator: {name}")
    return min(near, key=lambda a: len(a.slug))


def _plain(text: str) -> str:
    return "".join(ch for ch in text.lower() if ch.isalnum())


def find_architecture(row: Row, architectures: Mapping[str, Architecture]) -> Architecture:
    """The catalogue's shape under the row's model name, else the shape the row carries.

    Raises
    ------
    UnreadableRow
        If neither gives a usable shape.
    """
    name = str(row.get("model") or "")
    key = _plain(name)
    for slug, shape in architectures.items():
        if key and key in {_plain(slug), _plain(shape.name)}:
            return shape
    given = row.get("arch")
    if not isinstance(given, Mapping):
        raise UnreadableRow("no shape")
    try:
        return _shape_of(given, name)
    except InputError as error:
        raise UnreadableRow(f"impossible shape: {error.field}") from error


def _shape_of(given: Mapping[str, Any], name: str) -> Architecture:
    total = _number(given.get("params_total"))
    if not _number(given.get("layers")) or not _number(given.get("hidden")):
        if total is None or given.get("flops_per_sample") is not None:
            raise UnreadableRow("no shape")
        return architecture_from_count(total, active=_number(given.get("params_active")), name=name)
    layers, hidden, heads = int(given["layers"]), int(given["hidden"]), int(given.get("heads") or 1)
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
        moe=_experts_of(given.get("moe"), layers),
        mla=_latent_of(given.get("mla")),
        params_total=total,
        params_active=_number(given.get("params_active")),
        causal="encoder" not in str(given.get("note") or ""),
    )
    return validate(_with_known_mixer(shape))


def _experts_of(given: Any, layers: int) -> MixtureOfExperts | None:
    if not isinstance(given, Mapping):
        return None
    sparse = int(given.get("moe_layers") or layers)
    every = layers // sparse if sparse and layers % sparse == 0 else 1
    return MixtureOfExperts(
        experts=int(given["experts"]),
        top_k=int(given.get("top_k") or given.get("experts_per_token") or 1),
        expert_ffn=int(given["expert_ffn"]),
        shared_experts=int(given.get("shared_experts") or 0),
        shared_ffn=int(given.get("shared_ffn") or 0),
        dense_layers=layers - sparse if every == 1 else 0,
        every=every,
    )


def _latent_of(given: Any) -> LatentAttention | None:
    if not isinstance(given, Mapping):
        return None
    return LatentAttention(
        kv_latent=int(given.get("kv_lora_rank") or 512),
        rope_dim=int(given.get("qk_rope") or given.get("qk_rope_head_dim") or 64),
        q_latent=int(given.get("q_lora") or given.get("q_lora_rank") or 1536),
        nope_dim=int(given.get("qk_nope") or given.get("qk_nope_head_dim") or 128),
        v_dim=int(given.get("v") or given.get("v_head_dim") or 128),
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
    row: Row, accelerators: Mapping[str, Accelerator], architectures: Mapping[str, Architecture]
) -> Case:
    """The row as a case. Raises :class:`UnreadableRow` with the reason."""
    hardware, workload = _part(row, "hardware"), _part(row, "workload")
    accelerator = find_accelerator(accelerators, str(hardware.get("gpu") or ""))
    architecture = find_architecture(row, architectures)
    engine = engine_family(_part(row, "engine"))
    weights, kv = _precisions(_part(row, "precision"), engine)
    try:
        compute_rate(accelerator, weights)
    except InputError as error:
        raise UnreadableRow(f"no compute rate: {accelerator.slug}") from error
    lengths = _number(workload.get("input_len")), _number(workload.get("output_len"))
    input_tokens = 0.0 if lengths[0] is None else lengths[0]
    output_tokens = 1.0 if lengths[1] is None else lengths[1]
    tp, pp = _whole(hardware.get("tp"), 1), _whole(hardware.get("pp"), 1)
    adp = _whole(workload.get("attention_dp"), 1)
    ep = _whole(workload.get("moe_ep"), 1)
    count = _whole(hardware.get("count"), tp * pp * adp)
    adp = min(adp, max(count // (tp * pp), 1))
    if (
        architecture.moe is not None
        and tp * pp * adp < count
        and _whole(workload.get("moe_tp"), 1) * ep == count
    ):
        adp = count // (
            tp * pp
        )  # experts over all cards, attention over fewer: the rest are attention replicas
    replicas = max(count // (tp * pp * adp), 1)
    if architecture.moe is not None and engine == "tensorrt-llm-torch" and "moe_ep" not in workload:
        ep, adp, tp = tp, tp, 1  # its published tables run sparse models with attention-DP and EP
    requests = math.inf
    concurrency = _number(workload.get("concurrency"))
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
    )


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
    weights = str(given.get("weights") or "fp16").lower()
    if weights not in WEIGHT_FORMATS:
        raise UnreadableRow(f"unknown precision: {weights}")
    kv = str(given.get("kv") or "unknown").lower()
    return weights, kv if kv in KV_BYTES else default_kv_dtype(weights, engine)


def _part(row: Row, key: str) -> Mapping[str, Any]:
    value = row.get(key)
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _whole(value: Any, default: int) -> int:
    number = _number(value)
    return default if number is None else max(int(number), 1)


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
