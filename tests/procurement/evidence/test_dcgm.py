import json

import pytest

from procurement.evidence.read import read_evidence
from tests.procurement.evidence.samples import content, read

PASSING = "01_dcgmi_diag_v4_r3_all_pass.json"


def changed(test, gpu, status, error=None, info=None, version=None):
    document = json.loads(content(PASSING))
    for category in document["DCGM Diagnostic"]["test_categories"]:
        for entry in category["tests"]:
            for result in entry["results"]:
                if (entry["name"], result["entity_id"]) == (test, gpu):
                    result["status"] = status
                    if error:
                        result["warnings"] = [error]
                    if info:
                        result["info"] = info
    if version:
        document["metadata"]["version"] = version
    return read_evidence(json.dumps(document).encode())


BUSY = (
    "The memory copy utilization for the GPU: 35 is greater than 10%. "
    "This may affect the results of the nvbandwidth test."
)


def test_a_known_defect_of_the_tool_asks_for_a_retest():
    error = {"warning": BUSY, "error_id": 30, "error_category": 1, "error_severity": 2}
    evidence = changed("nvbandwidth", 2, "Fail", error, version="4.5.0")
    assert (evidence.verdict, evidence.devices[2].verdict, evidence.devices[3].verdict) == (
        "retest",
        "inconclusive",
        "pass",
    )
    assert changed("nvbandwidth", 2, "Fail", error, version="4.4.2").verdict == "fail"


def test_a_pass_over_memory_that_was_not_allocated_proves_nothing():
    error = {
        "warning": "Unable to allocate enough memory",
        "error_id": 56,
        "error_category": 10,
        "error_severity": 1,
    }
    assert changed("memory", 2, "Pass", error).devices[2].verdict == "inconclusive"
    assert (
        changed("memory", 2, "Pass", info=["Allocated 8375186227 bytes (9.8%)"]).devices[2].verdict
        == "inconclusive"
    )


@pytest.mark.parametrize(
    ("number", "status", "verdict"),
    [
        (58, "Fail", "fail"),
        (10, "Fail", "fail"),
        (29, "Fail", "warn"),
        (102, "Fail", "warn"),
        (48, "Fail", "inconclusive"),
        (85, "Fail", "fail"),
        (4, "Pass", "fail"),
        (999, "Fail", "fail"),
        (999, "Pass", "warn"),
    ],
)
def test_the_error_id_decides_not_the_printed_word(number, status, verdict):
    error = {"warning": "x", "error_id": number, "error_category": 10, "error_severity": 1}
    evidence = changed("targeted_power", 1, status, error)
    assert (evidence.devices[1].verdict, evidence.devices[0].verdict) == (verdict, "pass")
    assert "test_categories" in evidence.devices[1].reasons[0].where


@pytest.mark.parametrize(
    "document",
    [
        {"DCGM Diagnostic": {"runtime_error": "no"}, "metadata": {"version": "4.4.1"}},
        {"DCGM GPU Diagnostic": {"Runtime Error": "no"}, "version": "3.3.9"},
        {"runtime_error": "no", "version": "4.4.1"},
        {"DCGM Diagnostic": {"test_categories": []}},
        {"DCGM Multi-Node Diagnostic": {"hosts": []}},
    ],
)
def test_a_run_that_did_not_start_is_inconclusive(document):
    assert read_evidence(json.dumps(document).encode()).verdict in ("inconclusive",)


def test_wrapped_text_is_joined_before_it_is_read():
    wanted = (
        "GPU 6 had a CUDA DBE error: cuStreamSynchronize returned 214 uncorrectable ECC error encountered. "
        "Drain the GPU, run a field diagnostic."
    )
    evidence = read("06_dcgmi_diag_v4_table.txt")
    assert wanted in str(evidence.devices[6].reasons[0].message)


TABLE = (
    content("07_dcgmi_diag_v3_table_all_skipped.txt").decode().replace("Skip - All", "Pass - All")
)
POWER = "| Targeted Power            | Pass - All                                     |\n"


def test_the_older_table_lists_devices_by_status():
    assert read_evidence(TABLE.encode()).verdict == "pass"
    rows = (
        "| Targeted Power            | Pass - GPUs: 1, 2                              |\n"
        "|                           | Fail - GPUs: 0, 3                              |\n"
        "| Warning                   | GPU 0 Max power of 200.0 did not reach desire  |\n"
        "|                           | d power minimum                                |\n"
    )
    assert POWER in TABLE
    evidence = read_evidence(TABLE.replace(POWER, rows).encode())
    assert [d.verdict for d in evidence.devices] == ["fail", "pass", "pass", "fail"]
    assert "desired power minimum" in str(evidence.devices[0].reasons[0].message)


def test_a_device_that_a_test_does_not_name_was_not_tested():
    rows = POWER.replace("Pass - All      ", "Pass - GPUs: 1,2")
    evidence = read_evidence(TABLE.replace(POWER, rows).encode())
    assert [d.verdict for d in evidence.devices] == ["inconclusive", "pass", "pass", "inconclusive"]


def test_log_lines_and_labels_around_the_json():
    text = content(PASSING).decode()
    evidence = read_evidence(("warning: x\n" + text).encode())
    assert (evidence.verdict, evidence.counts["garbage_prefix_lines"]) == ("pass", 1)
    labelled = "".join(f"gpu-a01: {line}\n" for line in text.splitlines())
    evidence = read_evidence(labelled.encode())
    assert (evidence.verdict, evidence.devices[0].host) == ("pass", "gpu-a01")


def test_an_iteration_that_is_damaged_is_not_replaced_by_one_that_is_whole():
    text = content("05_dcgmi_diag_iterations.json").decode()
    cut = text.replace('"iterations"', '"iter', 1)
    assert read_evidence(cut.encode()).verdict != "pass"


def test_a_summary_that_fails_over_results_that_pass_is_a_failure():
    document = json.loads(content(PASSING))
    document["DCGM Diagnostic"]["test_categories"][0]["tests"][0]["test_summary"]["status"] = "Fail"
    assert read_evidence(json.dumps(document).encode()).verdict == "fail"
    wrapped = {"iterations": [json.loads(content(PASSING))], "Overall Result": "Fail"}
    assert read_evidence(json.dumps(wrapped).encode()).verdict == "fail"


@pytest.mark.parametrize("key", ["tests", "results", "DCGM Diagnostic"])
def test_a_part_under_a_damaged_name_is_missing(key):
    data = content("05_dcgmi_diag_iterations.json").decode()
    at = data.rindex(f'"{key}"')
    assert read_evidence((data[:at] + '"x' + data[at + 1 :]).encode()).verdict != "pass"


def test_rows_out_of_their_place_are_no_table():
    lines = TABLE.splitlines(keepends=True)
    head = next(i for i, text in enumerate(lines) if "Metadata" in text)
    moved = [*lines[:head], POWER, *lines[head:]]
    for order in ([*lines[:2], lines[3], lines[2], *lines[4:]], moved, lines[4:], lines[:-1]):
        evidence = read_evidence("".join(order).encode())
        assert (evidence.verdict, evidence.complete) == ("inconclusive", False)


SKIPPED = content("07_dcgmi_diag_v3_table_all_skipped.txt").decode()


def moved(text, row, after):
    """The table with the row that names `row` moved below the one that names `after`."""
    lines = text.splitlines(keepends=True)
    line = lines.pop(next(i for i, each in enumerate(lines) if row in each))
    lines.insert(next(i for i, each in enumerate(lines) if after in each) + 1, line)
    return "".join(lines)


def test_software_checks_below_a_section_of_hardware_tests_are_no_hardware_tests():
    """Every real test was skipped; shuffled lines put five checks of the installation below Integration."""
    text = SKIPPED
    for test in ("PCIe  ", "GPU Memory", "Diagnostic                | Skip", "Targeted Stress"):
        text = moved(text, test, "CUDA Main Library")
    for check in ("Inforom", "Persistence Mode"):
        text = moved(text, check, "Integration")
    evidence = read_evidence(text.encode())
    assert (evidence.verdict, evidence.complete) == ("inconclusive", False)


PASSED = SKIPPED.replace("Skip - All", "Pass - All")


@pytest.mark.parametrize(
    ("row", "after"),
    [
        (
            "PCIe  ",
            "Inforom",
        ),  # a hardware test among the software checks; its own section is empty
        ("Inforom", "PCIe  "),
        ("Integration", "Memory Bandwidth"),  # a section's line below its rows
    ],
)
def test_a_row_outside_its_section_makes_a_table_inconclusive(row, after):
    assert read_evidence(PASSED.encode()).verdict == "pass"
    assert read_evidence(moved(PASSED, row, after).encode()).verdict == "inconclusive"


def test_a_section_printed_twice_makes_a_table_inconclusive():
    stress = next(line for line in PASSED.splitlines(keepends=True) if "Stress  -" in line)
    twice = PASSED.replace("| Targeted Power", stress + "| Targeted Power")
    assert read_evidence(twice.encode()).verdict == "inconclusive"
