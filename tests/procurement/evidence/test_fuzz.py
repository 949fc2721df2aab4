"""Damaged evidence: no crash, and no pass where the original did not. script/fuzz_evidence runs many more."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from procurement.evidence.read import read_evidence
from procurement.evidence.types import Evidence, Verdict
from tests.procurement.evidence.mutations import TOKENS, mutated
from tests.procurement.evidence.samples import NAMES, content, read

ROOT = Path(__file__).parents[3]
OTHERS = [content(name) for name in NAMES]
DECIDED = (Verdict.FAIL, Verdict.REJECT, Verdict.RETEST, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize("name", NAMES)
def test_damage_never_turns_a_failure_into_a_pass(name):
    original = read(name).verdict
    for seed in range(12):
        data, steps = mutated(777_000 + seed, content(name), OTHERS)
        verdict = read(name, data).verdict
        assert not (verdict == "pass" and original in DECIDED), (seed, steps)


pieces = st.one_of(
    st.sampled_from(TOKENS),
    st.binary(max_size=30),
    st.sampled_from([line for data in OTHERS for line in data.splitlines(keepends=True)[:12]]),
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(pieces, max_size=30).map(b"".join))
def test_any_bytes_give_evidence_and_nothing_else(data):
    evidence = read_evidence(data)
    assert isinstance(evidence, Evidence)
    assert Evidence.from_json(evidence.to_json()) == evidence
    assert evidence.verdict != "pass"


def test_the_script_reports_what_it_ran():
    done = subprocess.run(
        [sys.executable, str(ROOT / "script" / "fuzz_evidence"), "--count", "30", "--seed", "5"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "30 inputs, 0 problems" in done.stdout


@pytest.mark.parametrize(
    "seed",
    [
        ("13_nccl_allreduce_2node_mpi_prefixed.txt", 202611300029262),  # sizes of 300 digits
        (
            "30_rvs_gst_iet_pebb_mi300x.txt",
            202612010028948,
        ),  # cut off within the first word of a line
        ("20_dcgm_exporter_metrics.prom", 202612010097008),  # a whole number of 500 digits
    ],
)
def test_what_fuzzing_found_stays_mended(seed):
    name, number = seed
    data, _steps = mutated(number, content(name), OTHERS)
    assert read(name, data).verdict in (*DECIDED, Verdict.WARN)


def test_sizes_that_make_no_row_prove_no_whole_run():
    name = "11_nccl_allreduce_8xh100_ok.txt"
    data = content(name).replace(b"step: 2(factor)", b"step: 1(factor)")
    assert data != content(name)
    assert read(name, data).verdict == Verdict.INCONCLUSIVE
