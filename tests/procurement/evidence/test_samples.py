"""Every sample is read as a correct reader must read it: format, verdicts, completeness, counts and figures."""

import re

import pytest

from tests.procurement.evidence.samples import NAMES, content, expected, read

KEYS = ("uuid", "serial", "bus", "rvs_gpu_id", "index")


@pytest.mark.parametrize("name", NAMES)
def test_format_verdict_and_completeness(name):
    want, got = expected(name), read(name).to_json()
    fields = ("format", "file_verdict", "complete", "review_verdict")
    assert {f: got.get(f) for f in fields if f in want} == {f: want[f] for f in fields if f in want}


@pytest.mark.parametrize("name", NAMES)
def test_each_device_has_its_verdict_and_a_reason(name):
    want, got = expected(name), read(name).to_json()
    for device in want.get("gpus", []):
        key = next(k for k in KEYS if device.get(k) is not None)
        found = next(
            d
            for d in got["gpus"]
            if str(d.get(key)).lower() == str(device[key]).lower()
            and d.get("host")
            in (device.get("host"), d.get("host") if "host" not in device else None)
        )
        assert found["verdict"] == device["verdict"]
        assert found["verdict"] in ("pass", "not_tested") or found["reasons"]


@pytest.mark.parametrize("name", NAMES)
def test_counts_and_figures(name):
    want, got = expected(name), read(name).to_json()
    for part in ("counts", "metrics"):
        numbers = {k: v for k, v in want.get(part, {}).items() if isinstance(v, int | float)}
        assert {k: got[part].get(k) for k in numbers} == pytest.approx(numbers, rel=0.005)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_user_must_be_told_is_told(name):
    codes = {w.split(":")[0].strip().lower() for w in read(name).to_json()["warnings"]}
    tokens = {w.split(":")[0].strip().lower() for w in expected(name).get("warnings", [])}
    assert {t for t in tokens if re.fullmatch(r"[a-z0-9_]+", t)} <= codes


@pytest.mark.parametrize("name", NAMES)
def test_every_reason_names_rule_and_place(name):
    for device in read(name).devices:
        for reason in device.reasons:
            assert reason.code
            assert str(reason.message)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97])
def test_a_truncated_file_never_passes(name, part):
    data = content(name)
    assert read(name, data[: int(len(data) * part)]).verdict != "pass"


@pytest.mark.parametrize("name", NAMES)
def test_the_json_form_can_be_read_back(name):
    evidence = read(name)
    assert type(evidence).from_json(evidence.to_json()).to_json() == evidence.to_json()
