from dataclasses import replace

import pytest

from core.errors import InputError
from planning.estimators.inference_constants import published_constants
from planning.estimators.sample_truth import read_sample_case
from planning.estimators.samples import (
    SampleWorkload,
    encoder_flops,
    sample_time,
    samples_per_second,
)
from planning.reference import resolve_accelerator, resolve_architecture, resolve_model

K = published_constants()
L4 = resolve_accelerator("L4")
H200 = resolve_accelerator("H200")


def test_encoder_flops_are_two_per_weight_and_token_and_attention():
    bert = resolve_architecture("BERT-large")
    matrices = 24 * 12 * 1024**2
    assert encoder_flops(bert, 384) == pytest.approx(384 * 2 * matrices, rel=0.15)


def test_twice_the_work_takes_twice_as_long_when_compute_bound():
    small = SampleWorkload(flops=1e12, params=1e8, batch=64)
    large = SampleWorkload(flops=2e12, params=1e8, batch=64)
    ratio = sample_time(large, H200, K).total / sample_time(small, H200, K).total
    assert ratio == pytest.approx(2.0, rel=0.1)


def test_a_single_sample_of_a_large_model_waits_for_its_weights():
    one = SampleWorkload(flops=1e9, params=5e9, batch=1)
    assert sample_time(one, L4, K).total > 5e9 * 2 / L4.hbm_bandwidth


def test_resnet50_on_l4_is_near_the_mlperf_figure():
    # MLPerf inference v3.0, closed, L4x1_TRT, resnet50 offline: 13,157.8 samples/s
    row = {
        "model": "resnet50",
        "arch": {"params_total": 25.6e6, "flops_per_sample": 8.2e9},
        "precision": {"weights": "int8"},
        "hardware": {"gpu": "L4", "count": 1},
        "workload": {"scenario": "Offline"},
    }
    case = read_sample_case(row, resolve_accelerator)
    assert samples_per_second(case.workload, case.accelerator, K) == pytest.approx(
        13_157.8, rel=0.3
    )


def test_each_pass_reads_the_weights_and_the_caches_again():
    once = SampleWorkload(2.5e12, 1.5e9, activation_bytes=250e6)
    spoken = replace(once, passes=100.0, equal_passes=False)

    read = sample_time(spoken, H200, K).reading
    assert read == pytest.approx(100 * sample_time(once, H200, K).reading)
    assert read > 100 * (3e9 + 64 * 250e6) / H200.hbm_bandwidth


def test_a_decoder_reads_after_its_encoder_has_computed():
    alike = SampleWorkload(2.5e12, 1.5e9, passes=100.0, activation_bytes=250e6)
    spoken = sample_time(replace(alike, equal_passes=False), H200, K)

    assert spoken.total == pytest.approx(spoken.compute + spoken.reading + spoken.launches)
    assert spoken.total > sample_time(alike, H200, K).total


def test_flux_on_an_h100_lies_between_compiled_and_eager_runs():
    # Flux 1.0 Dev, 50 steps, 1024 x 1024, BF16, batch 1, H100 80GB HBM3, Torch 2.5.1: 8.198 s compiled, 12.339 s eager
    # (microsoft/onnxruntime pull request 22986, "H100 Benchmark Results")
    flux = resolve_model("flux-1-dev")
    assert flux.forward_flops is not None
    one = SampleWorkload(50 * flux.forward_flops, 11.9e9, "bf16", flux.network, 1.0, 50.0)

    assert 8.198 < sample_time(one, resolve_accelerator("H100"), K).total < 12.339


@pytest.mark.parametrize(
    ("workload", "field"),
    [
        (SampleWorkload(0, 1e8), "flops"),
        (SampleWorkload(1e9, -1), "params"),
        (SampleWorkload(1e9, 1e8, batch=0), "batch"),
        (SampleWorkload(1e9, 1e8, passes=0), "passes"),
        (SampleWorkload(1e9, 1e8, network="quantum"), "network"),
        (SampleWorkload(1e9, 1e8, dtype="fp5"), "weights_dtype"),
    ],
)
def test_impossible_samples_are_refused(workload, field):
    with pytest.raises(InputError) as raised:
        sample_time(workload, H200, K)
    assert raised.value.field == field
