"""Steady state of an engine: continuous batching with prefill riding along, static batches, offline runs.

Elementwise over candidates, shape (n,).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planning.estimators.inference_candidates import Candidates
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_memory import sequences_that_fit
from planning.estimators.inference_steps import Rates, StepTime, effective_rates, step_time
from planning.estimators.inference_tables import Floats
from planning.estimators.precision import ENGINES


@dataclass(frozen=True, slots=True)
class Serving:
    """What one replica does. Where nothing fits, or the card has no rate for the precision, `fits` is False and the
    times are nan."""

    fits: np.ndarray  # bool (n,)
    capacity: Floats  # sequences that memory holds [1]
    batch: Floats  # sequences in flight [1]
    decoding: Floats  # of them, those that decode [1]
    decode: StepTime  # a step without prefill
    mixed: StepTime  # a step with prefill
    mixed_share: Floats  # share of steps that carry prefill [1]
    tpot: Floats  # time per output token after the first [s]
    ttft: Floats  # time to first token [s]
    end_to_end: Floats  # ttft + (output - 1) x tpot [s]
    throughput: Floats  # output tokens per second of the replica [1/s]

    def row(self, i: int) -> Serving:
        """One row as arrays of length 1."""
        columns: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            columns[name] = value.row(i) if isinstance(value, StepTime) else value[i : i + 1]
        return Serving(**columns)


def serve(c: Candidates, k: Constants, *, ran: bool = False) -> Serving:
    """Continuous batching at the given concurrency, or at as many sequences as memory holds.

    With `ran` the candidates are known to have run, so that where the memory estimate is short one sequence is served.
    """
    r = effective_rates(c, k)
    capacity = sequences_that_fit(c, k)
    fits = ((capacity >= 1.0) | ran) & np.isfinite(r.compute)
    limit = np.minimum(
        np.maximum(np.floor(capacity), 1.0),
        k.per("max_batch", ENGINES)[c.engine] * c.attention_data_parallel,
    )
    batch = np.where(fits, np.minimum(np.minimum(c.concurrency, c.requests), limit), 1.0)
    output = np.maximum(c.output_tokens, 1.0)
    context = c.input_tokens + c.output_tokens / 2.0

    first = _steady_step(c, k, r, batch=batch, context=context)
    ttft = first_token_time(c, k, r, batch=batch, step=first.step, context=context)
    # a slot in prefill yields no token: fewer sequences decode than are in flight
    decoding = np.maximum(batch * output * first.step / (output * first.step + ttft), 1.0)
    steady = _steady_step(c, k, r, batch=decoding, context=context)
    step = steady.step
    throughput = decoding / step
    drained = np.where(np.isfinite(c.requests), k["drain"] * batch / c.requests, 0.0)
    throughput = throughput / (1.0 + drained)
    waiting = (
        np.maximum(np.where(np.isfinite(c.concurrency), c.concurrency, batch) / batch, 1.0) - 1.0
    )
    ttft = ttft + waiting * output * step
    nan = np.where(fits, 1.0, np.nan)
    return Serving(
        fits=fits,
        capacity=capacity,
        batch=batch * nan,
        decoding=decoding * nan,
        decode=steady.decode,
        mixed=steady.mixed,
        mixed_share=steady.mixed_share,
        tpot=step * nan,
        ttft=ttft * nan,
        end_to_end=(ttft + (output - 1.0) * step) * nan,
        throughput=throughput * nan,
    )


@dataclass(frozen=True, slots=True)
class _Steady:
    decode: StepTime
    mixed: StepTime
    mixed_share: Floats
    step: Floats  # mean step [s]


def _steady_step(
    c: Candidates, k: Constants, r: Rates, *, batch: Floats, context: Floats
) -> _Steady:
    """Mean step while as many requests begin as end: batch / output of them in each step."""
    output = np.maximum(c.output_tokens, 1.0)
    arrivals = batch / output
    prefill = c.input_tokens * arrivals
    chunk = k["max_step_tokens"] * c.attention_data_parallel
    share = np.clip(np.maximum(arrivals, prefill / chunk), 1e-9, 1.0)
    decode = step_time(c, k, r, decode=batch, context=context, prefill=np.zeros_like(batch))
    mixed = step_time(c, k, r, decode=batch, context=context, prefill=prefill / share)
    return _Steady(decode, mixed, share, (1.0 - share) * decode.total + share * mixed.total)


def first_token_time(
    c: Candidates, k: Constants, r: Rates, *, batch: Floats, step: Floats, context: Floats
) -> Floats:
    """Prefill of one request among the others, with those that arrive together, and the engine's own delay. [s]"""
    ones = np.ones_like(batch)
    alone = step_time(c, k, r, decode=ones, context=c.input_tokens, prefill=c.input_tokens).total
    crowd = k.per("ttft.crowd", ENGINES)[c.engine] * (batch - 1.0) ** k["ttft.power"]
    base = k.per("ttft.base", ENGINES)[c.engine]
    return base + alone * (1.0 + crowd) + k["ttft.step"] * step


def static_batch(c: Candidates, k: Constants, *, ran: bool = False) -> Serving:
    """All requests begin together: one prefill of the batch, then output steps without prefill. No reuse of slots.

    Needs a finite concurrency; a batch that memory cannot hold does not fit.
    """
    r = effective_rates(c, k)
    capacity = sequences_that_fit(c, k)
    batch = c.concurrency
    fits = ((capacity >= batch) | ran) & np.isfinite(batch) & np.isfinite(r.compute)
    safe = np.where(np.isfinite(batch), batch, 1.0)
    output = np.maximum(c.output_tokens, 1.0)
    context = c.input_tokens + c.output_tokens / 2.0
    nothing = np.zeros_like(safe)
    chunk = np.minimum(safe * c.input_tokens, k["max_step_tokens"])
    passes = np.maximum(safe * c.input_tokens / np.maximum(chunk, 1.0), 1.0)
    first = step_time(c, k, r, decode=safe / passes, context=c.input_tokens, prefill=chunk)
    decode = step_time(c, k, r, decode=safe, context=context, prefill=nothing)
    ttft = passes * first.total
    total = ttft + (output - 1.0) * decode.total
    nan = np.where(fits, 1.0, np.nan)
    return Serving(
        fits=fits,
        capacity=capacity,
        batch=safe * nan,
        decoding=safe * nan,
        decode=decode,
        mixed=first,
        mixed_share=nothing,
        tpot=decode.total * nan,
        ttft=ttft * nan,
        end_to_end=total * nan,
        throughput=safe * output / total * nan,
    )
