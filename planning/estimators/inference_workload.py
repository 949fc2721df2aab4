"""What an inference estimate is asked: the workload, and how one replica is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.errors import InputError, require_at_least, require_between
from core.messages import Message, msg, plural
from planning.estimators.architecture import validate
from planning.estimators.precision import (
    check_engine,
    compute_rate,
    default_kv_dtype,
    kv_bytes,
    weight_format,
)
from planning.estimators.types import Accelerator, Architecture

BATCHING = ("continuous", "static", "none")
LARGEST_TENSOR_PARALLEL = 8  # accelerators of a server, unless told otherwise
LARGEST_REPLICA = 64
MOST_TOKENS = 10_000_000.0


@dataclass(frozen=True, slots=True)
class InferenceWorkload:
    """One service, or one batch job.

    Parameters
    ----------
    input_tokens, output_tokens : float
        Mean lengths of a request. [tokens]
    output_tokens_p99 : float or None
        99th percentile of the output length; None: twice the mean, said in the estimate. [tokens]
    weights_dtype, kv_dtype : str, str or None
        Data types; None: what the engine would take by itself.
    engine : str
        Engine family: "tensorrt-llm", "tensorrt-llm-torch" (since 0.19), "vllm", "sglang", "other".
    batching : str
        "continuous", "static" or "none" (one request at a time).
    concurrency : float or None
        Requests in flight per replica; None: as many as memory holds and the latency bounds allow. [1]
    request_rate : float or None
        Mean arrivals over the day; None: no fleet is sized. [1/s]
    peak_factor : float
        Peak over mean (office 3-5, consumer 2-3, batch 1-1.3: ask). [1]
    ttft_slo, tpot_slo, latency_slo : float or None
        Bounds on first token, time per token, and whole answer, at `percentile`. [s]
    percentile : float
        Where the bounds hold, 0.5 to 0.999. [1]
    headroom : float
        Reserve over the forecast peak; 0.2 is the floor. [1]
    arrival_variation, service_variation : float
        Coefficients of variation of the times between arrivals (1: Poisson) and of service. [1]
    """

    input_tokens: float
    output_tokens: float
    output_tokens_p99: float | None = None
    weights_dtype: str = "fp16"
    kv_dtype: str | None = None
    engine: str = "vllm"
    batching: str = "continuous"
    concurrency: float | None = None
    request_rate: float | None = None
    peak_factor: float = 1.0
    ttft_slo: float | None = None
    tpot_slo: float | None = None
    latency_slo: float | None = None
    percentile: float = 0.99
    headroom: float = 0.2
    arrival_variation: float = 1.0
    service_variation: float = 1.0

    @property
    def cache_dtype(self) -> str:
        """The cache's data type: as asked, else the engine's own choice."""
        return self.kv_dtype or default_kv_dtype(self.weights_dtype, self.engine)

    @property
    def long_output(self) -> float:
        """99th percentile of the output length; not given: twice the mean, one token stays one. [tokens]"""
        usual = 2.0 * self.output_tokens if self.output_tokens > 1.0 else self.output_tokens
        return self.output_tokens_p99 or usual

    @property
    def bounded_output(self) -> float:
        """Output length that the bound on whole answers is held to: the long one above the 90th percentile. [tokens]"""
        return self.long_output if self.percentile > 0.9 else self.output_tokens


@dataclass(frozen=True, slots=True)
class InferenceLayout:
    """How the accelerators of one replica share the model. [1]

    Attention is split over `tensor_parallel` ranks and repeated `attention_data_parallel` times; experts are split
    over all of them, `expert_parallel` of them as whole experts.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    attention_data_parallel: int = 1
    expert_parallel: int = 1

    @property
    def accelerators(self) -> int:
        """Accelerators of one replica."""
        return self.tensor_parallel * self.pipeline_parallel * self.attention_data_parallel


def checked(
    workload: InferenceWorkload, accelerator: Accelerator, architecture: Architecture
) -> InferenceWorkload:
    """The workload with its cache type made explicit.

    Raises
    ------
    InputError
        Naming the first field that is out of range, its value and the limit.
    """
    validate(architecture)
    w = workload
    require_between("input_tokens", w.input_tokens, 1.0, MOST_TOKENS)
    require_between("output_tokens", w.output_tokens, 1.0, MOST_TOKENS)
    if w.output_tokens_p99 is not None:
        require_between("output_tokens_p99", w.output_tokens_p99, w.output_tokens, MOST_TOKENS)
    limit = architecture.max_context
    if limit is not None and w.input_tokens + w.output_tokens > limit:
        total = w.input_tokens + w.output_tokens
        text = msg(
            "input and output together are %(value)s tokens; %(model)s takes at most %(limit)s",
            value=round(total),
            model=architecture.name,
            limit=limit,
        )
        raise InputError("input_tokens", text, value=total, limit=limit)
    if limit is not None and w.output_tokens_p99 is not None:
        require_between(
            "output_tokens_p99", w.output_tokens_p99, w.output_tokens, limit - w.input_tokens
        )
    weight_format(w.weights_dtype)
    kv_bytes(w.cache_dtype)
    check_engine(w.engine)
    compute_rate(accelerator, w.weights_dtype)
    if w.batching not in BATCHING:
        text = msg(
            "batching is %(value)s; it must be one of %(known)s",
            value=w.batching,
            known=", ".join(BATCHING),
        )
        raise InputError("batching", text, value=w.batching, limit=BATCHING)
    for name, value in {"concurrency": w.concurrency, "request_rate": w.request_rate}.items():
        if value is not None:
            require_between(name, value, 1.0 if name == "concurrency" else 1e-6, 1e9)
    for name in ("ttft_slo", "tpot_slo", "latency_slo"):
        value = getattr(w, name)
        if value is not None:
            require_between(name, value, 1e-4, 1e6)
    require_between("peak_factor", w.peak_factor, 1.0, 100.0)
    require_between("percentile", w.percentile, 0.5, 0.9999)
    require_between("headroom", w.headroom, 0.0, 10.0)
    require_between("arrival_variation", w.arrival_variation, 0.0, 20.0)
    require_between("service_variation", w.service_variation, 0.0, 20.0)
    for name, size in {
        "visible_bytes": accelerator.visible_bytes,
        "hbm_bandwidth": accelerator.hbm_bandwidth,
    }.items():
        require_at_least(name, size, 1.0)
    if w.batching == "none":
        w = replace(w, concurrency=1.0)
    elif w.batching == "static" and w.concurrency is None:
        text = msg("A static batch needs its size: concurrency is missing")
        raise InputError("concurrency", text)
    return replace(w, kv_dtype=w.cache_dtype)


def check_layout(layout: InferenceLayout, architecture: Architecture) -> InferenceLayout:
    """The same layout when the model can be split so, else :class:`InputError`."""
    parts = {
        "tensor_parallel": layout.tensor_parallel,
        "pipeline_parallel": layout.pipeline_parallel,
        "attention_data_parallel": layout.attention_data_parallel,
        "expert_parallel": layout.expert_parallel,
    }
    for name, value in parts.items():
        require_between(name, value, 1, 1024)
    if architecture.heads % layout.tensor_parallel:
        raise _indivisible("tensor_parallel", layout.tensor_parallel, "heads", architecture.heads)
    if layout.pipeline_parallel > architecture.layers:
        require_between("pipeline_parallel", layout.pipeline_parallel, 1, architecture.layers)
    ranks = layout.tensor_parallel * layout.attention_data_parallel
    if layout.expert_parallel > 1:
        experts = architecture.moe.experts if architecture.moe is not None else 1
        require_between("expert_parallel", layout.expert_parallel, 1, min(ranks, experts))
        if ranks % layout.expert_parallel:
            raise _indivisible("expert_parallel", layout.expert_parallel, "ranks", ranks)
    if layout.attention_data_parallel > 1 and architecture.moe is None:
        text = msg(
            "attention_data_parallel is %(value)s; a dense model gains nothing from it over more replicas (limit 1)",
            value=layout.attention_data_parallel,
        )
        raise InputError(
            "attention_data_parallel", text, value=layout.attention_data_parallel, limit=1
        )
    return layout


def replicas_message(replicas: int, each: int) -> Message:
    """How many accelerators, spelled out: never a total that leaves open what it counts."""
    total = replicas * each
    if replicas == 1:
        return plural(
            each,
            msg("1 replica x 1 accelerator per replica = 1 accelerator."),
            msg(
                "1 replica x %(each)s accelerators per replica = %(total)s accelerators.",
                each=each,
                total=total,
            ),
        )
    return plural(
        each,
        msg(
            "%(replicas)s replicas x 1 accelerator per replica = %(total)s accelerators.",
            replicas=replicas,
            total=total,
        ),
        msg(
            "%(replicas)s replicas x %(each)s accelerators per replica = %(total)s accelerators.",
            replicas=replicas,
            each=each,
            total=total,
        ),
    )


def default_layouts(architecture: Architecture) -> tuple[InferenceLayout, ...]:
    """Layouts worth trying, fewest accelerators first: tensor parallel in a server, then stages over servers."""
    out: list[InferenceLayout] = []
    tensor = [t for t in (1, 2, 4, 8) if architecture.heads % t == 0]
    for pipeline in (1, 2, 4, 8):
        if pipeline > architecture.layers:
            break
        for t in tensor:
            if t * pipeline > LARGEST_REPLICA or (pipeline > 1 and t != tensor[-1]):
                continue
            out.append(InferenceLayout(tensor_parallel=t, pipeline_parallel=pipeline))
    moe = architecture.moe
    if moe is not None and architecture.mla is not None:
        # a latent cache is repeated on every tensor rank; attention by requests and experts by ranks split it
        out += [
            InferenceLayout(attention_data_parallel=ranks, expert_parallel=ranks)
            for ranks in (2, 4, 8)
            if moe.experts % ranks == 0
        ]
    # of equal size the tensor-parallel one last: it takes the least memory
    return tuple(
        sorted(out, key=lambda layout: (layout.accelerators, layout.attention_data_parallel == 1))
    )


def within_a_server(
    layouts: Sequence[InferenceLayout], fits: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which layouts are worth having: stages over several servers only where no single server holds the model.

    More replicas do the same work, and none of them waits for a network. Shape (layouts,)
    """
    spread = np.array([layout.accelerators > LARGEST_TENSOR_PARALLEL for layout in layouts])
    if not (fits & ~spread).any():
        return np.ones(len(layouts), dtype=bool)
    return ~spread


def _indivisible(field: str, value: int, what: str, whole: int) -> InputError:
    text: Message = msg(
        "%(field)s is %(value)s; it must divide %(what)s (%(whole)s)",
        field=field,
        value=value,
        what=what,
        whole=whole,
    )
    return InputError(field, text, value=value, limit=whole)
