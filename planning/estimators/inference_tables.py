"""Shapes and accelerators as arrays, so that one formula serves one estimate and a million candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from planning.estimators.architecture import (
    attention_groups,
    attention_layers,
    attention_width,
    count_parameters,
    kv_groups,
    moe_layers,
    total_parameters,
)
from planning.estimators.precision import WEIGHT_FORMATS, compute_rate
from planning.estimators.types import Accelerator, Architecture

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GENERATIONS = ("older", "ampere", "ada", "hopper", "blackwell", "blackwell-pcie", "cdna", "other")
COMPUTE_CLASSES = ("32", "16", "8", "4")


class _Table:
    """Columns of equal length; ``take`` gathers rows."""

    def take(self, index: Ints) -> Self:
        columns: dict[str, Any] = {
            name: getattr(self, name)[index]
            for name in type(self).__dataclass_fields__  # type: ignore[attr-defined]
        }
        return type(self)(**columns)


@dataclass(frozen=True, slots=True)
class ShapeTable(_Table):
    """What the step time needs of a model, one row each. Parameters as published when known."""

    layers: Floats
    hidden: Floats
    vocab: Floats
    mixer: Floats  # attention and state-space weights [parameters]
    dense_mlp: Floats  # dense feed-forward, shared experts, routers, norms [parameters]
    tables: Floats  # input table and output head [parameters]
    head: Floats  # what the output projection multiplies [parameters]
    routed: Floats  # routed experts [parameters]
    routed_active: Floats  # of them, what a token visits [parameters]
    experts: Floats
    top_k: Floats
    sparse_layers: Floats
    linear_layers: Floats
    kv_heads: Floats
    kv_heads_windowed: Floats
    heads: Floats
    kv_full: Floats  # cache elements per token over layers that see everything
    kv_windowed: Floats  # the same over windowed layers, up to the window
    window: Floats  # [tokens], inf: none
    state: Floats  # constant elements per sequence
    attention_full: Floats  # FLOPs per token and token seen, full layers
    attention_windowed: Floats
    attention_prefill: Floats  # the same as attention_full for input tokens: MLA is expanded there
    picked: Floats  # tokens that an indexer leaves to attention, inf: no indexer
    index_bytes: Floats  # of the indexer's keys, per token over all layers [B]
    index_flops: Floats  # of the indexer, per token and token seen
    index_layers: Floats
    latent: Floats  # 1 for MLA: the cache cannot be split over tensor-parallel ranks
    causal: Floats

    @classmethod
    def of(cls, architectures: Sequence[Architecture]) -> Self:
        rows = [_shape_row(a) for a in architectures]
        return cls(**{f.name: np.array([row[f.name] for row in rows]) for f in fields(cls)})


def _shape_row(a: Architecture) -> dict[str, float]:
    count = count_parameters(a)
    scale = total_parameters(a) / count.total
    layers = attention_layers(a)
    full, windowed = attention_groups(a)
    (kv_full, _all), (kv_windowed, window) = kv_groups(a)
    index = a.mla if a.mla is not None and a.mla.index_topk else None
    if a.mla is not None:  # absorbed form: scores over latent and rope, values over the latent
        width = 2.0 * a.heads * (2 * a.mla.kv_latent + a.mla.rope_dim)
    else:
        width = 2.0 * attention_width(a, full.shape)
    moe = a.moe
    head = float(a.vocab * a.hidden) if a.causal else 0.0
    return {
        "layers": float(a.layers),
        "hidden": float(a.hidden),
        "vocab": float(a.vocab),
        "mixer": count.attention * scale,
        "dense_mlp": (count.dense_mlp + count.norms) * scale,
        "tables": (count.embedding + count.head) * scale,
        "head": head,
        "routed": count.experts * scale,
        "routed_active": count.experts_active * scale,
        "experts": float(moe.experts) if moe else 1.0,
        "top_k": float(moe.top_k) if moe else 1.0,
        "sparse_layers": float(moe_layers(a)),
        "linear_layers": float(a.linear_layers),
        "kv_heads": float(a.kv_heads),
        "kv_heads_windowed": float(windowed.shape.kv_heads),
        "heads": float(a.heads),
        "kv_full": kv_full,
        "kv_windowed": kv_windowed,
        "window": float(window) if windowed.layers and window else np.inf,
        "state": a.linear_layers * (a.state_space.state_elements if a.state_space else 0.0),
        "attention_full": full.layers * width,
        "attention_windowed": windowed.layers
        * (width if a.mla is not None else 2.0 * attention_width(a, windowed.shape)),
        "attention_prefill": full.layers * 2.0 * attention_width(a, full.shape),
        "picked": float(index.index_topk) if index else np.inf,
        "index_bytes": layers * (index.index_dim + 4.0) if index else 0.0,  # an FP32 scale a key
        "index_flops": 2.0 * layers * index.index_heads * index.index_dim if index else 0.0,
        "index_layers": float(layers) if index else 0.0,
        "latent": float(a.mla is not None),
        "causal": float(a.causal),
    }


@dataclass(frozen=True, slots=True)
class AcceleratorTable(_Table):
    """What the step time needs of a card, one row each."""

    memory: Floats  # [B]
    bandwidth: Floats  # [B/s]
    link: Floats  # one direction, to the other cards of a replica [B/s]
    fast_link: Floats  # 1: NVLink, Infinity Fabric or the like among all cards; 0: PCIe
    generation: Ints  # index into GENERATIONS
    tdp: Floats  # [W], nan: unknown
    rate: Floats  # (n, dtypes) dense FLOP/s for weights of each type, order of WEIGHT_FORMATS; nan: unknown
    rate_class: Ints  # (n, dtypes) index into COMPUTE_CLASSES

    @classmethod
    def of(cls, accelerators: Sequence[Accelerator]) -> Self:
        rates = [_rates(a) for a in accelerators]
        fast = [has_fast_link(a) for a in accelerators]
        link = [
            (a.link_bandwidth or 0.0) / 2 if f else a.pcie_bandwidth
            for a, f in zip(accelerators, fast, strict=True)
        ]
        return cls(
            memory=np.array([a.visible_bytes for a in accelerators]),
            bandwidth=np.array([a.hbm_bandwidth for a in accelerators]),
            link=np.array(link),
            fast_link=np.array(fast, dtype=float),
            generation=np.array([generation_index(a) for a in accelerators], dtype=np.int64),
            tdp=np.array([np.nan if a.tdp is None else a.tdp for a in accelerators]),
            rate=np.array([[rate for rate, _ in row] for row in rates]),
            rate_class=np.array([[kind for _, kind in row] for row in rates], dtype=np.int64),
        )


def has_fast_link(accelerator: Accelerator) -> bool:
    """Whether all cards of a server reach each other faster than over PCIe. A bridge joins two cards only."""
    return bool(accelerator.link_bandwidth) and not accelerator.form_factor.lower().startswith(
        "pcie"
    )


def generation_index(accelerator: Accelerator) -> int:
    """Index into GENERATIONS: the kernels' generation, not the memory's."""
    text = accelerator.generation.lower()
    if "blackwell" in text:
        pcie = accelerator.form_factor.lower().startswith("pcie") or not accelerator.link_bandwidth
        return GENERATIONS.index("blackwell-pcie" if pcie else "blackwell")
    for name in ("ampere", "hopper", "cdna", "ada"):
        if name in text:
            return GENERATIONS.index(name)
    older = any(name in text for name in ("kepler", "pascal", "volta", "turing", "maxwell"))
    return GENERATIONS.index("older" if older else "other")


_CLASS_OF = {"fp32": 0, "tf32": 0, "fp16": 1, "bf16": 1, "fp8": 2, "int8": 2, "fp4": 3, "int4": 3}


def _rates(accelerator: Accelerator) -> list[tuple[float, int]]:
    """(rate, class) for weights of each type; nan where the card has no usable unit."""
    rows = []
    for weights in WEIGHT_FORMATS:
        usable = any(accelerator.peak_flops.get(d) for d in WEIGHT_FORMATS[weights].compute)
        if not usable:
            rows.append((np.nan, 1))
            continue
        dtype, rate = compute_rate(accelerator, weights)
        rows.append((rate, _CLASS_OF[dtype]))
    return rows
