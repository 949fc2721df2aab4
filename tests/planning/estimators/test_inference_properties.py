"""Laws that hold whatever the constants are: hypothesis looks for candidates that break them."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planning.estimators.inference_batching import Serving, serve
from planning.estimators.inference_candidates import candidates, one_candidate
from planning.estimators.inference_constants import published_constants
from planning.estimators.inference_memory import (
    kv_sequence_bytes,
    sequences_that_fit,
    weight_bytes,
)
from planning.estimators.inference_steps import effective_rates, step_time
from planning.estimators.inference_workload import InferenceLayout, InferenceWorkload
from planning.estimators.precision import ENGINES, KV_DTYPES, WEIGHT_DTYPES, WEIGHT_FORMATS
from planning.reference import accelerators, architectures

K = published_constants()
MODELS = sorted(slug for slug, shape in architectures().items() if shape.causal)
CARDS = sorted(slug for slug, card in accelerators().items() if card.peak_flops.get("fp16"))


@st.composite
def cases(draw):
    workload = InferenceWorkload(
        input_tokens=draw(st.integers(1, 20_000)),
        output_tokens=draw(st.integers(1, 5_000)),
        weights_dtype=draw(st.sampled_from(WEIGHT_DTYPES)),
        kv_dtype=draw(st.sampled_from(KV_DTYPES)),
        engine=draw(st.sampled_from(ENGINES)),
        concurrency=float(draw(st.integers(1, 256))),
    )
    card = accelerators()[draw(st.sampled_from(CARDS))]
    shape = architectures()[draw(st.sampled_from(MODELS))]
    assume(any(card.peak_flops.get(d) for d in WEIGHT_FORMATS[workload.weights_dtype].compute))
    layout = InferenceLayout(draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([1, 2])))
    return workload, card, shape, layout


def served(workload, card, shape, layout) -> Serving:
    return serve(one_candidate(workload, card, shape, layout), K, ran=True)


@given(cases(), st.floats(1.0, 4.0))
def test_more_bandwidth_never_slows_decoding(case, factor):
    workload, card, shape, layout = case
    faster = replace(card, hbm_bandwidth=card.hbm_bandwidth * factor)
    before, after = (one_candidate(workload, one, shape, layout) for one in (card, faster))
    slow, fast = served(workload, card, shape, layout), served(workload, faster, shape, layout)
    # On the faster card fewer sequences wait in prefill, so that its own step may carry more of them: the step of
    # equally many is compared, and what comes out of all.
    ours = {"decode": slow.decoding, "context": np.array([1000.0]), "prefill": np.zeros(1)}
    steps = [step_time(c, K, effective_rates(c, K), **ours).total[0] for c in (before, after)]
    assert not steps[1] > steps[0] * (1 + 1e-9)
    assert not fast.throughput[0] < slow.throughput[0] * (1 - 1e-9)


@given(cases(), st.floats(1.0, 4.0))
def test_more_memory_never_lowers_the_concurrency(case, factor):
    workload, card, shape, layout = case
    small = sequences_that_fit(one_candidate(workload, card, shape, layout), K)[0]
    larger = replace(card, hbm_bytes=card.hbm_bytes * factor)
    assert sequences_that_fit(one_candidate(workload, larger, shape, layout), K)[0] >= small


@given(cases())
def test_sharding_never_raises_the_memory_of_a_part(case):
    workload, card, shape, layout = case
    one = one_candidate(workload, card, shape, replace(layout, tensor_parallel=1))
    split = one_candidate(workload, card, shape, layout)
    context = one.input_tokens + one.output_tokens
    assert weight_bytes(split)[0] <= weight_bytes(one)[0]
    assert kv_sequence_bytes(split, context)[0] <= kv_sequence_bytes(one, context)[0]


@given(cases(), st.integers(0, 50_000))
def test_longer_context_never_lowers_the_cache(case, more):
    one = one_candidate(*case)
    context = np.array([1000.0])
    assert kv_sequence_bytes(one, context + more)[0] >= kv_sequence_bytes(one, context)[0]


@given(cases())
def test_fewer_bits_never_take_more_memory(case):
    workload, card, shape, layout = case
    sizes = [
        weight_bytes(one_candidate(replace(workload, weights_dtype=dtype), card, shape, layout))[0]
        for dtype in ("fp32", "fp16", "fp8", "int4")
    ]
    assert sizes == sorted(sizes, reverse=True)


@given(cases())
def test_more_requests_in_flight_never_speed_up_a_token(case):
    workload, card, shape, layout = case
    alone = served(replace(workload, concurrency=1.0), card, shape, layout)
    crowded = served(workload, card, shape, layout)
    assert crowded.tpot[0] >= alone.tpot[0] * (1 - 1e-9)
    assert crowded.ttft[0] >= alone.ttft[0] * (1 - 1e-9)


@given(cases())
def test_times_are_positive_and_finite_and_throughput_follows(case):
    found = served(*case)
    for value in (found.tpot, found.ttft, found.end_to_end, found.throughput):
        assert np.isfinite(value[0])
        assert value[0] > 0
    assert found.throughput[0] == pytest.approx(found.decoding[0] / found.tpot[0])


@settings(max_examples=20, deadline=None)
@given(st.lists(cases(), min_size=2, max_size=30))
def test_a_batch_of_candidates_equals_one_at_a_time(drawn):
    together = candidates(
        [case[2] for case in drawn],
        [case[1] for case in drawn],
        model=np.arange(len(drawn)),
        accelerator=np.arange(len(drawn)),
        weights=np.array([WEIGHT_DTYPES.index(case[0].weights_dtype) for case in drawn]),
        kv=np.array([KV_DTYPES.index(case[0].kv_dtype) for case in drawn]),
        engine=np.array([ENGINES.index(case[0].engine) for case in drawn]),
        tensor_parallel=np.array([float(case[3].tensor_parallel) for case in drawn]),
        pipeline_parallel=np.array([float(case[3].pipeline_parallel) for case in drawn]),
        input_tokens=np.array([float(case[0].input_tokens) for case in drawn]),
        output_tokens=np.array([float(case[0].output_tokens) for case in drawn]),
        concurrency=np.array([case[0].concurrency for case in drawn]),
    )
    batch = serve(together, K)
    for i, case in enumerate(drawn):
        single = serve(one_candidate(*case), K)
        for name in (f.name for f in fields(Serving) if f.name not in ("decode", "mixed")):
            np.testing.assert_allclose(getattr(batch, name)[i], getattr(single, name)[0], rtol=1e-9)


@given(cases(), st.floats(1.1, 8.0))
def test_twice_the_tokens_of_a_step_take_at_least_the_flops(case, factor):
    workload, card, shape, layout = case
    assume(workload.input_tokens >= 2)
    short = served(replace(workload, concurrency=1.0, output_tokens=1.0), card, shape, layout)
    longer = replace(
        workload, concurrency=1.0, output_tokens=1.0, input_tokens=workload.input_tokens * factor
    )
    long = served(longer, card, shape, layout)
    if longer.input_tokens <= K["max_step_tokens"]:
        assert long.mixed.flops[0] >= short.mixed.flops[0]


def test_a_precision_without_a_rate_does_not_fit_and_never_yields_a_number():
    gaudi = accelerators()["intel-gaudi-2-oam-hl-225h"]
    shape = architectures()["llama-3-1-8b"]
    found = serve(
        one_candidate(
            InferenceWorkload(100, 100, weights_dtype="fp32"), gaudi, shape, InferenceLayout()
        ),
        K,
    )
    assert not found.fits[0]
    assert np.isnan(found.throughput[0])
