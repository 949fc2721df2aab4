from dataclasses import replace

import numpy as np
import pytest

from core.errors import InputError
from planning.estimators.architecture import architecture_from_count
from planning.estimators.inference import (
    alternatives,
    estimate_inference,
    memory_parts,
    plan_replica,
    require_fit,
)
from planning.estimators.inference_batching import serve, static_batch
from planning.estimators.inference_candidates import one_candidate
from planning.estimators.inference_constants import published_constants
from planning.estimators.inference_steps import experts_touched
from planning.estimators.inference_workload import InferenceLayout, InferenceWorkload
from planning.estimators.types import Grade, InfeasibleError
from planning.reference import resolve_accelerator, resolve_architecture

H100 = resolve_accelerator("H100")
A100 = resolve_accelerator("A100-SXM")
L40S = resolve_accelerator("L40S")
LLAMA_7B = resolve_architecture("Llama-2-7B")
LLAMA_8B = resolve_architecture("Llama-3.1-8B")
LLAMA_70B = resolve_architecture("Llama-3.1-70B")
MIXTRAL = resolve_architecture("Mixtral-8x7B")
R1 = resolve_architecture("DeepSeek-R1")


def part(estimate, name):
    return next(part.value for part in estimate.memory if part.name == name)


def test_seven_billion_in_16_bits_with_4096_tokens_takes_14_to_20_gb():
    workload = InferenceWorkload(4000, 96, concurrency=1)
    estimate = estimate_inference(workload, H100, LLAMA_7B)

    held = part(estimate, "weights") + part(estimate, "kv_cache")
    assert 14e9 <= held <= 20e9


@pytest.mark.parametrize(
    ("card", "least", "most"),
    [
        # vLLM on an RTX 3090 kept 3.81 GiB of cache with a profiled step of 20,000 tokens, 5.8 GiB with shorter ones
        # (vllm-project/vllm issue 10517)
        ("RTX 3090", 3.81, 5.82),
        ("RTX 4090", 3.81, 5.82),
        ("L4", 2.5, 5.82),
        ("A10", 2.5, 5.82),
    ],
)
def test_eight_billion_in_16_bits_fit_a_card_of_24_gb_with_the_cache_that_engines_report(
    card, least, most
):
    workload = InferenceWorkload(2048, 256, engine="vllm", concurrency=1)
    estimate = estimate_inference(workload, resolve_accelerator(card), LLAMA_8B)

    assert estimate.fits != "out_of_memory"
    assert estimate.layout["accelerators_per_replica"] == 1
    cache = estimate.figures["max_concurrency"].p50 * 2304 * 128 * 1024 / 2**30
    assert least <= cache <= most


def test_the_engines_reserve_never_exceeds_its_share_of_a_small_card_and_grows_with_the_card():
    reserves = []
    for gigabytes in (8e9, 16e9, 24e9, 48e9, 80e9, 141e9, 192e9):
        card = replace(H100, hbm_bytes=gigabytes)
        estimate = estimate_inference(InferenceWorkload(1, 1, concurrency=1), card, LLAMA_8B)
        reserves.append(part(estimate, "overhead"))

    assert reserves == sorted(reserves)
    assert reserves[2] < 3.7e9
    assert reserves[-1] == reserves[-2] == reserves[-3]  # what was fitted on large cards


def test_memory_bound_decoding_follows_bandwidth():
    # one token of one sequence reads all weights: H100 over A100 is 3.35 / 2.039 TB/s = 1.64
    reads = []
    for card in (H100, A100):
        one = one_candidate(
            InferenceWorkload(1, 1, concurrency=1), card, LLAMA_70B, InferenceLayout(8)
        )
        reads.append(float(serve(one, published_constants()).decode.bytes[0]) / card.hbm_bandwidth)
    assert reads[1] / reads[0] == pytest.approx(1.64, abs=0.01)


def test_quantised_weights_keep_tables_in_16_bits_and_count_scales():
    fp8 = estimate_inference(InferenceWorkload(100, 100, weights_dtype="fp8"), H100, LLAMA_8B)
    tables = 2 * 128256 * 4096
    assert part(fp8, "weights") == pytest.approx(8.03e9 - tables + 2 * tables, rel=0.01)


def test_every_figure_has_an_ordered_band_a_unit_and_a_grade():
    estimate = estimate_inference(
        InferenceWorkload(1000, 300, weights_dtype="fp8", concurrency=16), H100, LLAMA_8B
    )
    assert set(estimate.figures) >= {"ttft", "tpot", "end_to_end", "throughput", "max_concurrency"}
    for figure in estimate.figures.values():
        assert figure.p10 <= figure.p50 <= figure.p90
        assert figure.unit in {"s", "1/s", "1"}
        assert figure.grade is Grade.PUBLISHED
    assert estimate.constants_version == published_constants().version


def test_the_trace_ends_in_the_figures_shown():
    estimate = estimate_inference(InferenceWorkload(1000, 300, concurrency=8), H100, MIXTRAL)
    steps = {step.name: step.result for step in estimate.trace}

    assert steps["TPOT"] == estimate.figures["tpot"].p50
    assert steps["weights"] == part(estimate, "weights")
    parts = ("experts", "reading the cache", "communication", "overhead")
    total = steps["dense part of a decode step"] + sum(steps[name] for name in parts)
    assert total == pytest.approx(steps["decode step"])


def test_an_unmeasured_card_is_graded_extrapolated_with_a_wider_band():
    gaudi = resolve_accelerator("Gaudi2")
    workload = InferenceWorkload(1000, 300, weights_dtype="fp16", concurrency=8)
    near = estimate_inference(workload, H100, LLAMA_8B).figures["tpot"]
    far = estimate_inference(workload, gaudi, LLAMA_8B).figures["tpot"]

    assert far.grade is Grade.EXTRAPOLATED
    assert far.p90 / far.p10 > near.p90 / near.p10


def test_a_bare_parameter_count_is_answered_and_said():
    estimate = estimate_inference(InferenceWorkload(1000, 300), H100, architecture_from_count(13e9))
    assert estimate.fits == "fits"
    assert any("typical shape" in str(message) for message in estimate.assumptions)
    assert estimate.figures["tpot"].grade is Grade.EXTRAPOLATED


def test_what_does_not_fit_says_what_is_missing_and_three_changes():
    estimate = estimate_inference(
        InferenceWorkload(1000, 300), H100, LLAMA_70B, layout=InferenceLayout()
    )
    assert estimate.fits == "out_of_memory"
    assert estimate.figures == {}
    missing = estimate.memory_bytes.p50 - estimate.capacity_bytes
    assert f"{missing / 1e9:.1f} GB" in str(estimate.remedies[0])
    assert len(estimate.remedies) == 4
    with pytest.raises(InfeasibleError) as raised:
        require_fit(estimate)
    assert raised.value.shortfall_bytes == pytest.approx(missing)
    assert len(raised.value.remedies) == 3


def test_more_requests_in_flight_than_memory_holds_do_not_fit_and_the_remedies_do():
    tight = InferenceWorkload(6000, 2000, concurrency=64)
    estimate = estimate_inference(tight, L40S, LLAMA_8B, layout=InferenceLayout())
    assert estimate.fits == "out_of_memory"
    assert estimate.memory_bytes.p50 > estimate.capacity_bytes
    assert "Keep 16 requests" in str(estimate.remedies[1])
    assert len({remedy.template for remedy in estimate.remedies}) == len(estimate.remedies)
    fewer, shorter = replace(tight, concurrency=16), replace(tight, input_tokens=1000)
    for eased in (fewer, shorter):
        assert (
            estimate_inference(eased, L40S, LLAMA_8B, layout=InferenceLayout()).fits
            != "out_of_memory"
        )


def test_replicas_times_accelerators_per_replica_is_spelled_out():
    estimate = estimate_inference(
        InferenceWorkload(1000, 300, weights_dtype="fp8"), H100, LLAMA_70B, accelerators=8
    )
    per_replica = estimate.layout["accelerators_per_replica"]
    assert estimate.layout["replicas"] * per_replica == estimate.accelerators == 8
    one = estimate_inference(
        InferenceWorkload(1000, 300, weights_dtype="fp8"),
        H100,
        LLAMA_70B,
        layout=InferenceLayout(per_replica),
    )
    ratio = estimate.figures["throughput"].p50 / one.figures["throughput"].p50
    assert ratio == pytest.approx(8 / per_replica)


def test_a_latency_bound_lowers_the_concurrency():
    free = estimate_inference(InferenceWorkload(1000, 300), H100, LLAMA_8B)
    bound = estimate_inference(InferenceWorkload(1000, 300, tpot_slo=0.012), H100, LLAMA_8B)

    assert bound.figures["tpot"].p50 <= 0.012
    assert bound.figures["concurrency"].p50 < free.figures["concurrency"].p50


def test_an_impossible_bound_is_said_not_hidden():
    estimate = estimate_inference(InferenceWorkload(1000, 300, tpot_slo=0.0005), H100, LLAMA_8B)
    assert any("meets the latency bounds" in str(message) for message in estimate.warnings)


def test_the_cache_type_is_explicit_and_moves_the_largest_concurrency():
    wide = estimate_inference(InferenceWorkload(4000, 1000, kv_dtype="fp16"), H100, LLAMA_8B)
    narrow = estimate_inference(InferenceWorkload(4000, 1000, kv_dtype="fp8"), H100, LLAMA_8B)

    ratio = narrow.figures["max_concurrency"].p50 / wide.figures["max_concurrency"].p50
    assert ratio == pytest.approx(2.0, abs=0.05)
    assert any("cache is kept in fp8" in str(message) for message in narrow.assumptions)


def test_a_latent_cache_is_not_split_over_tensor_parallel_ranks():
    workload = InferenceWorkload(1000, 1000, weights_dtype="fp8", concurrency=8)
    k = published_constants()
    h200 = resolve_accelerator("H200")
    caches = [
        memory_parts(plan_replica(workload, h200, R1, k, layout=InferenceLayout(t)), k)[1].value
        for t in (4, 8)
    ]
    assert caches[0] == pytest.approx(caches[1])
    dp = InferenceLayout(1, attention_data_parallel=8, expert_parallel=8)
    spread = memory_parts(plan_replica(workload, h200, R1, k, layout=dp), k)[1].value
    assert spread == pytest.approx(caches[1] / 8)


def test_a_batch_touches_most_experts():
    touched = experts_touched(np.array([256.0]), np.array([8.0]), np.array([1.0, 64.0, 1e4]))
    assert touched[0] == pytest.approx(8 / 256)
    assert 0.8 < touched[1] < 0.9
    assert touched[2] == pytest.approx(1.0)


def test_static_batches_pay_the_prefill_before_the_first_token():
    workload = InferenceWorkload(2048, 128, batching="static", concurrency=32)
    one = one_candidate(workload, H100, LLAMA_7B, InferenceLayout())
    k = published_constants()
    static = static_batch(one, k)
    assert static.ttft[0] > 0.2
    total = static.ttft[0] + 127 * static.tpot[0]
    assert static.throughput[0] == pytest.approx(32 * 128 / total)


def test_a_static_batch_needs_its_size():
    with pytest.raises(InputError) as raised:
        estimate_inference(InferenceWorkload(100, 100, batching="static"), H100, LLAMA_7B)
    assert raised.value.field == "concurrency"


def test_one_at_a_time_is_told_to_batch_first():
    estimate = estimate_inference(InferenceWorkload(500, 100, batching="none"), H100, LLAMA_8B)
    assert estimate.figures["concurrency"].p50 == 1
    assert any("Compute is idle" in str(message) for message in estimate.warnings)
    assert any("asleep" in str(message) for message in estimate.warnings)


def test_sharding_over_pcie_is_warned_of():
    estimate = estimate_inference(
        InferenceWorkload(1000, 300, weights_dtype="fp8"), L40S, LLAMA_70B
    )
    assert estimate.layout["accelerators_per_replica"] > 1
    assert any("PCIe" in str(message) for message in estimate.warnings)


def test_int4_helps_single_requests_more_than_large_batches():
    def speedup(concurrency):
        rates = [
            estimate_inference(
                InferenceWorkload(100, 200, weights_dtype=dtype, concurrency=concurrency),
                A100,
                LLAMA_70B,
                layout=InferenceLayout(4),
            )
            .figures["throughput"]
            .p50
            for dtype in ("int4", "fp16")
        ]
        return rates[0] / rates[1]

    assert speedup(1) > 1.5
    assert speedup(1) > speedup(64)


def test_alternatives_are_estimated_in_full_with_their_accuracy_cost():
    found = alternatives(InferenceWorkload(1000, 300), H100, LLAMA_8B)
    by_kind = {(a.weights_dtype, a.batching): a for a in found}

    assert by_kind["fp8", "continuous"].speedup > 1.1
    assert by_kind["fp16", "none"].speedup < 0.2
    assert by_kind["int8", "continuous"].accuracy_loss == (1.5, 2.75)
    assert "batch" in str(by_kind["int4", "continuous"].note)
    speeds = [a.speedup or 0.0 for a in found]
    assert speeds == sorted(speeds, reverse=True)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"input_tokens": 0}, "input_tokens"),
        ({"input_tokens": float("nan")}, "input_tokens"),
        ({"output_tokens": -5}, "output_tokens"),
        ({"input_tokens": 200_000}, "input_tokens"),  # above the model's context
        ({"output_tokens_p99": 10}, "output_tokens_p99"),
        ({"weights_dtype": "fp12"}, "weights_dtype"),
        ({"kv_dtype": "int3"}, "kv_dtype"),
        ({"engine": "abacus"}, "engine"),
        ({"batching": "sometimes"}, "batching"),
        ({"concurrency": 0}, "concurrency"),
        ({"percentile": 1.0}, "percentile"),
        ({"headroom": -0.1}, "headroom"),
        ({"tpot_slo": 0.0}, "tpot_slo"),
        ({"peak_factor": 0.5}, "peak_factor"),
    ],
)
def test_out_of_range_input_names_field_value_and_limit(change, field):
    workload = replace(InferenceWorkload(1000, 300), **change)
    with pytest.raises(InputError) as raised:
        estimate_inference(workload, H100, LLAMA_8B)
    assert raised.value.field == field
    assert raised.value.limit is not None


@pytest.mark.parametrize(
    ("layout", "field"),
    [
        (InferenceLayout(3), "tensor_parallel"),
        (InferenceLayout(1, pipeline_parallel=64), "pipeline_parallel"),
        (InferenceLayout(2, expert_parallel=2), "expert_parallel"),
        (InferenceLayout(2, attention_data_parallel=2), "attention_data_parallel"),
        (InferenceLayout(0), "tensor_parallel"),
    ],
)
def test_layouts_that_cannot_be_are_refused(layout, field):
    with pytest.raises(InputError) as raised:
        estimate_inference(InferenceWorkload(1000, 300), H100, LLAMA_8B, layout=layout)
    assert raised.value.field == field


def test_too_few_accelerators_for_one_replica_is_an_error():
    with pytest.raises(InputError) as raised:
        estimate_inference(
            InferenceWorkload(100, 100), H100, LLAMA_70B, accelerators=2, layout=InferenceLayout(4)
        )
    assert (raised.value.field, raised.value.limit) == ("accelerators", 4)


def test_ten_thousand_estimates_leave_no_memory_behind():
    import gc
    import tracemalloc

    k = published_constants()
    workload = InferenceWorkload(1000, 300, concurrency=8)
    one = one_candidate(workload, H100, LLAMA_8B, InferenceLayout())
    serve(one, k)
    gc.collect()
    tracemalloc.start()
    for _ in range(300):
        serve(one, k)
    gc.collect()
    first = tracemalloc.get_traced_memory()[0]
    for _ in range(700):
        serve(one, k)
    gc.collect()
    second = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert second - first < 50_000
