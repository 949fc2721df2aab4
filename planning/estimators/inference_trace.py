"""The arithmetic of an estimate, line by line, in the symbols of docs/estimators/inference.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planning.estimators.architecture import (
    active_parameters,
    kv_elements_per_token,
    total_parameters,
)
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_memory import (
    kv_sequence_bytes,
    kv_split,
    reserve_bytes,
    weight_bytes,
)
from planning.estimators.inference_steps import effective_rates, experts_touched
from planning.estimators.types import VISIBLE_SHARE, Accelerator, Architecture, Step

if TYPE_CHECKING:
    from planning.estimators.inference import ReplicaPlan


def trace(
    plan: ReplicaPlan, accelerator: Accelerator, architecture: Architecture, k: Constants
) -> tuple[Step, ...]:
    """Memory first, then the step, then latency and throughput."""
    c, s, w = plan.candidate, plan.serving, plan.workload
    whole = w.input_tokens + w.output_tokens
    capacity = float(s.capacity[0])
    weight = float(c.weight_bytes_per_parameter[0])
    lines = [
        Step("parameters", "N", {"model": architecture.name}, total_parameters(architecture), "1"),
        Step("active parameters", "N_active", {}, active_parameters(architecture), "1"),
        Step(
            "weights",
            "N x bytes / (t p), tables in 16 bits",
            {"bytes": weight, "t": plan.layout.tensor_parallel, "p": plan.layout.pipeline_parallel},
            float(weight_bytes(c)[0]),
            "B",
        ),
        Step(
            "cache elements per token",
            "2 L k d; MLA: L (latent + rope)",
            {"L": architecture.layers, "k": architecture.kv_heads, "d": architecture.head_dim},
            kv_elements_per_token(architecture),
            "1",
        ),
        Step(
            "cache of one sequence",
            "elements x bytes x (I + O) / split, windowed layers up to the window",
            {
                "bytes": float(c.kv_element_bytes[0]),
                "I": w.input_tokens,
                "O": w.output_tokens,
                "split": float(kv_split(c)[0]),
            },
            float(kv_sequence_bytes(c, c.input_tokens + c.output_tokens)[0]),
            "B",
        ),
        Step(
            "usable memory",
            "label in GiB x what the driver shows",
            {
                "label": accelerator.hbm_bytes,
                "shown": VISIBLE_SHARE[accelerator.memory_kind],
            },
            accelerator.visible_bytes,
            "B",
        ),
        Step(
            "reserve",
            "min(reserve of the engine, base + share x usable) + activations",
            {
                "engine": w.engine,
                "base": k["reserve_base"],
                "share": k["reserve_share"],
            },
            float(reserve_bytes(c, k)[0]),
            "B",
        ),
        Step(
            "sequences that fit",
            "(usable - reserve - weights) / cache of one sequence",
            {"tokens": whole},
            capacity,
            "1",
        ),
    ]
    if not plan.fits:
        return tuple(lines)
    r = effective_rates(c, k)
    d, m = s.decode, s.mixed
    batch, decoding = float(s.batch[0]), float(s.decoding[0])
    share = float(s.mixed_share[0])
    lines += [
        Step("sequences in flight", "B", {"asked": w.concurrency or "as many as fit"}, batch, "1"),
        Step("of them decoding", "B O tpot / (O tpot + ttft)", {"B": batch}, decoding, "1"),
        Step(
            "effective bandwidth",
            "W e_b",
            {
                "W": accelerator.hbm_bandwidth,
                "e_b": float(r.bandwidth[0]) / accelerator.hbm_bandwidth,
            },
            float(r.bandwidth[0]),
            "B/s",
        ),
        Step(
            "effective rate",
            "F e_c",
            {"F": float(c.card.rate[0, c.weights[0]])},
            float(r.compute[0]),
            "FLOP/s",
        ),
        Step(
            "dense part of a decode step",
            "overlap(bytes / (W e_b), 2 N B / (F e_c))",
            {"bytes": float(d.bytes[0]), "B": decoding},
            float(d.dense[0]),
            "s",
        ),
    ]
    if architecture.moe is not None:
        touched = experts_touched(c.shape.experts, c.shape.top_k, s.decoding * k["expert.spread"])
        lines += [
            Step(
                "experts that a step touches",
                "E (1 - (1 - k/E)^(s B))",
                {
                    "E": architecture.moe.experts,
                    "k": architecture.moe.top_k,
                    "s": k["expert.spread"],
                },
                float(touched[0]) * architecture.moe.experts,
                "1",
            ),
            Step("experts", "overlap(bytes, padded FLOP)", {}, float(d.experts[0]), "s"),
        ]
    output = w.output_tokens
    lines += [
        Step(
            "reading the cache",
            "B cache(c) / (W e_kv)",
            {"c": w.input_tokens + output / 2, "B": decoding},
            float(d.cache[0]),
            "s",
        ),
        Step("communication", "2 L (hop + volume / link)", {}, float(d.communication[0]), "s"),
        Step("overhead", "layers + step + B x sequence", {}, float(d.overhead[0]), "s"),
        Step("decode step", "sum", {}, float(d.total[0]), "s"),
        Step(
            "step with prefill",
            "the same with I B / (O f) input tokens",
            {"f": share},
            float(m.total[0]),
            "s",
        ),
        Step("share of steps with prefill", "f", {"B": decoding, "O": output}, share, "1"),
        Step(
            "mean step" if output <= 1.0 else "TPOT",
            "(1 - f) decode + f mixed",
            {"f": share},
            float(s.tpot[0]),
            "s",
        ),
        Step(
            "TTFT", "base + prefill (1 + crowd (B - 1)^q) + step share", {}, float(s.ttft[0]), "s"
        ),
        Step(
            "end to end",
            "TTFT + (O - 1) TPOT",
            {"O": output},
            float(s.end_to_end[0]),
            "s",
        ),
        Step("throughput of a replica", "decoding / TPOT", {}, float(s.throughput[0]), "1/s"),
    ]
    return tuple(lines)
