"""Steady state of an engine: continuous batching with prefill riding along, static batches, offline runs.

Elementwise over candidates, shape (n,).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planning.estimators.candidates import Candidates
from planning.estimators.constants import Constants
from planning.estimators.precision import ENGINES
from planning.estimators.steps import Rates, StepTime, effective_rates, step_time
from planning.estimators.tables import Floats
from planning.estimators.weights import sequences_that_fit


@dataclass(frozen=True, slots=True)
class Serving:
    """What one replica does. Where nothing fits, `fits` is False and the times are nan."""

    fits: np.ndarray  # bool (n,)
    capacity: Floats  # sequences that memory holds [1]
    batch: Floats  # sequences in a step [1]
    decode: StepTime  # a step without prefill
    mixed: StepTime  # a step with prefill
    mixed_share: Floats  # share of steps that carry prefill [1]
    tpot: Floats  # time per output token after the first [s]
    ttft: Floats  # time to first token [s]
    end_to_end: Floats  # ttft + (output - 1) x tpot [s]
    throughput: Floats  # output tokens per second of the replica [1/s]


def serve(c: Candidates, k: Constants) -> Serving:
    """Continuous batching at the given concurrency, or at as many sequences as memory holds."""
    r = effective_rates(c, k)
    capacity = sequences_that_fit(c, k)
    fits = capacity >= 1.0
    limit = np.minimum(
        np.floor(capacity), k.per("max_batch", ENGINES)[c.engine] * c.attention_data_parallel
    )
    batch = np.where(fits, np.minimum(np.minimum(c.concurrency, c.requests), limit), 1.0)
    output = np.maximum(c.output_tokens, 1.0)
    context = c.input_tokens + c.output_tokens / 2.0

    arrivals = batch / output  # requests that begin in a mean step
    prefill = c.input_tokens * arrivals
    chunk = k["max_step_tokens"] * c.attention_data_parallel
    mixed_share = np.clip(np.maximum(arrivals, prefill / chunk), 1e-9, 1.0)
    nothing = np.zeros_like(batch)
    decode = step_time(c, k, r, decode=batch, context=context, prefill=nothing)
    mixed = step_time(c, k, r, decode=batch, context=context, prefill=prefill / mixed_share)
    step = (1.0 - mixed_share) * decode.total + mixed_share * mixed.total

    throughput = batch / step
    drained = np.where(np.isfinite(c.requests), k["drain"] * batch / c.requests, 0.0)
    throughput = throughput / (1.0 + drained)
    ttft = first_token_time(c, k, r, batch=batch, step=step, context=context)
    waiting = (
        np.maximum(np.where(np.isfinite(c.concurrency), c.concurrency, batch) / batch, 1.0) - 1.0
    )
    ttft = ttft + waiting * output * step
    nan = np.where(fits, 1.0, np.nan)
    return Serving(
        fits=fits,
        capacity=capacity,
        batch=batch * nan,
        decode=decode,
        mixed=mixed,
        mixed_share=mixed_share,
        tpot=step * nan,
        ttft=ttft * nan,
        end_to_end=(ttft + (output - 1.0) * step) * nan,
        throughput=throughput * nan,
    )


def first_token_time(
    c: Candidates, k: Constants, r: Rates, *, batch: Floats, step: Floats, context: Floats
) -> Floats:
    """Prefill of one request among the others, with those that arrive together, and the engine's own delay. [s]"""
    ones = np.ones_like(batch)
    alone = step_time(c, k, r, decode=ones, context=c.input_tokens, prefill=c.input_tokens).total
    crowd = k.per("ttft.crowd", ENGINES)[c.engine] * (batch - 1.0) ** k["ttft.power"]
    base = k.per("ttft.base", ENGINES)[c.engine]
    return base + alone * (1.0 + crowd) + k["ttft.step"] * step
