"""The layout search: legal, fitting, the same formulas as one estimate, and reasons for the rest."""

import numpy as np
import pytest

from planning.estimators.architecture import architecture_from_count
from planning.estimators.layouts import (
    SearchSpace,
    evaluate_candidates,
    layout_grid,
    search_layouts,
    trusted,
)
from planning.estimators.training import estimate_training
from planning.estimators.training_candidates import candidate_row, stack
from planning.estimators.training_constants import training_constants
from planning.estimators.training_memory import memory_bounds, training_memory
from planning.estimators.training_time import training_time
from planning.estimators.training_workload import Cluster, Layout, TrainingWorkload, resolve
from planning.estimators.types import InfeasibleError

from .training_cases import A100, GPT3_175B, H100, LLAMA_3_8B

RECIPE = resolve(TrainingWorkload(framework="megatron", sequence_length=2048))
WIDE = SearchSpace(recompute=("none", "selective", "full"), sharding=("none", "zero1", "zero3"))


def base(architecture=GPT3_175B, batch=512):
    return candidate_row(
        RECIPE, H100, architecture, Layout(), Cluster(), micro_batch=1, global_batch=batch
    )


def test_the_best_layout_is_legal_and_fits():
    found = search_layouts(base(), RECIPE, 256, space=WIDE)
    best = found.best
    assert best is not None
    assert best.layout.accelerators == 256
    assert best.layout.tensor <= 8
    assert 96 % (best.layout.pipeline * best.layout.virtual_stages) == 0
    assert 512 % (best.layout.data * best.micro_batch) == 0
    assert best.memory <= H100.hbm_bytes


def test_no_fitting_layout_beats_the_best_and_each_loser_has_a_reason():
    found = search_layouts(base(), RECIPE, 256, space=WIDE)
    columns, legal = layout_grid(base(), RECIPE, 256, WIDE)
    kept = np.flatnonzero(legal)
    numbers = {n: c[kept] for n, c in columns.items() if not n.startswith("_")}
    result = evaluate_candidates([base()], np.zeros(kept.size, dtype=np.intp), numbers)
    fastest = result["rate"][result["sure"] > 0].max()
    assert found.best is not None
    assert found.best.rate == pytest.approx(fastest)
    assert found.losers
    assert all(loser.reason is not None for loser in found.losers)
    assert found.illegal + kept.size == found.considered


def test_a_layout_whose_p90_fits_is_preferred_and_its_price_is_said():
    columns, legal = layout_grid(base(), RECIPE, 64, WIDE)
    kept = np.flatnonzero(legal)
    numbers = {n: c[kept] for n, c in columns.items() if not n.startswith("_")}
    result = evaluate_candidates([base()], np.zeros(kept.size, dtype=np.intp), numbers)
    fits, sure = result["fits"] > 0, result["sure"] > 0
    found = search_layouts(base(), RECIPE, 64, space=WIDE)

    assert 0 < np.count_nonzero(sure) < np.count_nonzero(fits)
    assert found.best is not None
    assert found.best.rate == pytest.approx(result["rate"][sure].max())
    fastest = result["rate"][fits].max()
    if fastest > found.best.rate:
        assert found.price_of_room is not None
        gain = round(100 * (fastest / found.best.rate - 1), 1)
        assert f"{gain} % faster" in str(found.price_of_room)


def test_without_a_layout_whose_p90_fits_the_p50_decides_and_the_missing_room_is_said():
    job = TrainingWorkload(method="pretrain", tokens=1e12)
    eight = architecture_from_count(8e9)
    tight = estimate_training(job, A100, eight, accelerators=2)
    roomy = estimate_training(job, A100, eight, accelerators=16)

    assert tight.fits == "tight"
    lack = round((tight.memory_bytes.p90 - tight.capacity_bytes) / 1e9, 1)
    assert f"at the P90 {lack} GB are lacking" in str(tight.warnings[0])
    assert roomy.fits == "fits"
    assert roomy.memory_bytes.p90 <= roomy.capacity_bytes


def test_states_are_surer_than_what_comes_on_top_of_them():
    plain = training_memory(stack([base(LLAMA_3_8B) | {"data": 64.0}]), training_constants())
    low, high = memory_bounds(plain, training_constants())
    states = float((plain.weights + plain.gradients + plain.optimizer)[0])
    rest = float(plain.total[0]) - states

    assert float(low[0]) > 0.9 * states
    assert float(high[0]) - 1.02 * states == pytest.approx(
        training_constants().residuals["memory"][1] * rest
    )


def test_a_model_too_large_has_no_best_but_a_nearest():
    found = search_layouts(base(), RECIPE, 8, space=WIDE)
    assert found.best is None
    assert found.least_memory.memory > H100.hbm_bytes


def test_tensor_parallelism_leaves_the_node_only_when_told():
    inside, _ = layout_grid(base(), RECIPE, 64, SearchSpace())
    beyond, _ = layout_grid(base(), RECIPE, 64, SearchSpace(tensor_beyond_node=True))
    assert inside["tensor"].max() == 8
    assert beyond["tensor"].max() == 64


def test_a_count_that_divides_nothing_is_infeasible():
    with pytest.raises(InfeasibleError, match="must divide"):
        search_layouts(base(LLAMA_3_8B, batch=7), RECIPE, 13)


def test_a_batch_gives_what_single_estimates_give():
    row = base(LLAMA_3_8B)
    tensor, data = np.array([1.0, 2.0, 4.0]), np.array([8.0, 4.0, 2.0])
    many = evaluate_candidates([row], np.zeros(3, dtype=np.intp), {"tensor": tensor, "data": data})
    for i in range(3):
        one = stack([row | {"tensor": tensor[i], "data": data[i]}])
        assert many["memory"][i] == training_memory(one, training_constants()).total[0]
        assert many["step_time"][i] == training_time(one, training_constants()).total[0]


def test_several_bases_are_mixed_by_index():
    rows = [base(LLAMA_3_8B), base(GPT3_175B)]
    index = np.array([1, 0, 1], dtype=np.intp)
    many = evaluate_candidates(rows, index, {"data": np.full(3, 8.0)})
    assert many["memory"][0] == many["memory"][2] > many["memory"][1]


def test_where_no_p90_fits_the_layout_that_needs_least_is_taken_and_not_the_fastest():
    fits = np.array([[True, True, True, False]])
    memory = np.array([[70.0, 85.0, 71.0, 60.0]])
    none_sure = np.zeros((1, 4), dtype=bool)
    assert trusted(fits, none_sure, memory).tolist() == [[True, False, True, False]]
    one_sure = np.array([[False, True, False, False]])
    assert trusted(fits, one_sure, memory).tolist() == [[False, True, False, False]]
