"""A data sheet's figure is the data sheet's, whatever calibration measured."""

from __future__ import annotations

import pytest

from planning.calibration.apply import as_measured, as_told
from planning.calibration.shrinkage import Factor
from planning.estimators.precision import sparse_rate_warnings
from planning.reference import resolve_accelerator, resolve_model
from planning.study.answer_json import _accelerator
from planning.study.estimates import estimate_on
from planning.study.model import known_model
from planning.study.request import parse_request
from planning.study.search.snapshot import _accelerator_json

H100 = resolve_accelerator("H100")
FACTOR = Factor(0.932, 0.924, 1.08, 4)
SERVE = {"kind": "online_inference", "model": "llama-3.1-8b", "requests_per_day": "20k", "input_tokens": 600,
         "output_tokens": 150, "latency_class": "chat"}  # fmt: skip
TRAIN = {"kind": "finetuning", "model": "llama-3.1-8b", "tokens": "20M", "duration_days": 30}


def test_the_data_sheet_is_quoted_as_printed():
    here = as_measured(H100, FACTOR)
    assert here.peak_flops["fp16"] < H100.peak_flops["fp16"]
    for card in (H100, here):
        (told,) = sparse_rate_warnings(card, "fp16")
        assert (told.params["sparse"], told.params["dense"]) == (1979, 989)
    assert dict(here.published_flops) == pytest.approx(dict(H100.peak_flops))
    assert _accelerator(here)["peak_flops"] == pytest.approx(dict(H100.peak_flops))
    assert "measured_share" not in _accelerator_json(H100)
    assert _accelerator_json(here)["measured_share"] == FACTOR.factor


@pytest.mark.parametrize("data", [SERVE, TRAIN])
def test_traces_name_one_dense_rate(data):
    request = parse_request({**data, "accelerators": 8})
    known = known_model(request.model, resolve_model)
    told = as_told(estimate_on(request, known, as_measured(H100, FACTOR)).estimate, FACTOR, 3)
    rates = {
        value
        for step in told.trace
        for name, value in step.inputs.items()
        if name in ("peak", "F") and step.name != "service time" and isinstance(value, float)
    }
    assert rates
    assert all(value == pytest.approx(989.4e12) for value in rates)
