"""Calibration proves itself on fleets it has not seen: better where machines differ, no worse where they do not."""

import numpy as np
import pytest

from planning.calibration.shrinkage import LEAST_FOR_DRIFT, Outcome, calibrate

CELLS = [("h100", "training"), ("h100", "serving"), ("a100", "training"), ("l40s", "serving")]
NOISE = 0.08


def fleet(seed: int, *, spread: float, count: int, outlying: int = 0):
    """Outcomes of a fleet whose cells truly differ by `spread`, and as many that calibration never sees."""
    random = np.random.default_rng(seed)
    truth = (
        dict(zip(CELLS, random.normal(0.0, spread, len(CELLS)), strict=True))
        if spread
        else dict.fromkeys(CELLS, 0.0)
    )

    def outcomes(n, start):
        cells = [CELLS[i % len(CELLS)] for i in range(n)]
        logs = [truth[cell] + random.normal(0, NOISE) for cell in cells]
        return [
            Outcome(start + i, *cell, float(np.exp(log)), i)
            for i, (cell, log) in enumerate(zip(cells, logs, strict=True))
        ]

    seen = outcomes(count, 0)
    seen = [
        Outcome(o.key, o.accelerator, o.work, o.ratio * (5 if i < outlying else 1), o.order)
        for i, o in enumerate(seen)
    ]
    return seen, outcomes(400, 1000)


def errors(calibration, held_out):
    """Median |measured ÷ estimated - 1| before and after, and the share within P10 to P90."""
    before = np.median([abs(o.ratio - 1) for o in held_out])
    found = [
        (o.ratio, calibration.cells.get((o.accelerator, o.work), calibration.elsewhere))
        for o in held_out
    ]
    after = np.median([abs(ratio / f.factor - 1) for ratio, f in found])
    covered = np.mean([f.low <= ratio / f.factor <= f.high for ratio, f in found])
    return before, after, covered


def test_thirty_outcomes_cut_the_median_error_by_a_third_and_bands_keep_their_word():
    runs = []
    for seed in range(40):
        seen, held_out = fleet(seed, spread=0.25, count=30)
        runs.append(errors(calibrate(seen), held_out))
    before, after, covered = np.mean(runs, axis=0)
    assert after <= before * 2 / 3
    assert 0.75 <= covered <= 0.85


@pytest.mark.parametrize("count", [3, 10, 30, 100])
def test_a_fleet_that_equals_the_prior_is_not_made_worse(count):
    runs = []
    for seed in range(40):
        seen, held_out = fleet(seed, spread=0.0, count=count)
        runs.append(errors(calibrate(seen), held_out)[:2])
    before, after = np.mean(runs, axis=0)
    # Three outcomes cannot tell luck from truth; what they may cost is little.
    assert after <= before * (1.05 if count == 3 else 1.01)


def test_too_few_points_change_little():
    one = calibrate([Outcome(1, "h100", "training", 1.25)])
    many = calibrate([Outcome(i, "h100", "training", 1.25) for i in range(30)])
    assert 1.0 < one.cells["h100", "training"].factor < 1.2
    assert many.cells["h100", "training"].factor == pytest.approx(1.25, abs=0.01)
    assert calibrate([]).elsewhere.factor == 1.0


def test_what_all_cells_share_is_used_where_there_are_no_outcomes():
    everywhere = [Outcome(i, f"card{i % 5}", "training", 0.8, i) for i in range(50)]
    assert calibrate(everywhere).elsewhere.factor == pytest.approx(0.8, abs=0.06)


def test_outliers_are_flagged_and_left_out():
    seen, held_out = fleet(3, spread=0.2, count=40, outlying=2)
    found = calibrate(seen)
    assert found.outliers == (0, 1)
    clean = calibrate([o for o in seen if o.key > 1])
    assert errors(found, held_out)[1] == pytest.approx(errors(clean, held_out)[1], rel=0.01)


def test_drift_is_flagged_and_noise_alone_is_not():
    random = np.random.default_rng(5)
    steady = [
        Outcome(i, "h100", "training", float(np.exp(random.normal(0, NOISE))), i) for i in range(30)
    ]
    slower = [
        Outcome(o.key, o.accelerator, o.work, o.ratio * (0.8 if i >= 20 else 1), o.order)
        for i, o in enumerate(steady)
    ]
    assert calibrate(steady).drifting == ()
    assert calibrate(slower).drifting == (("h100", "training"),)
    assert len(steady) > LEAST_FOR_DRIFT


@pytest.mark.parametrize("ratio", [0.0, -1.0, float("nan"), float("inf")])
def test_a_ratio_that_is_none_is_refused(ratio):
    with pytest.raises(ValueError, match="ratio"):
        calibrate([Outcome(1, "h100", "training", ratio)])


def test_the_order_of_outcomes_does_not_matter():
    seen, _held_out = fleet(9, spread=0.2, count=30)
    assert calibrate(seen) == calibrate(sorted(seen, key=lambda o: -o.key))
