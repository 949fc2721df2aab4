import pytest

from procurement.evidence.policy import EvidenceContext
from procurement.evidence.read import read_evidence
from tests.procurement.evidence.samples import FOLDER, content

QUERY = (FOLDER / "variants" / "nvidia_smi_q_h100.txt").read_text()
FIRST = "GPU-3af216cf-bc24-2488-8c6d-9eebfb53ee52"


def read(text, **order):
    context = EvidenceContext.from_json({"order_context": order})
    return read_evidence(text.encode(), context=context)


def codes(evidence, device=0):
    return [reason.code for reason in evidence.devices[device].reasons]


def test_a_healthy_text_passes_and_binds_by_serial():
    evidence = read(QUERY)
    assert (evidence.format, evidence.verdict, evidence.driver_version) == (
        "nvidia_smi_q_text",
        "pass",
        "590.48",
    )
    assert evidence.devices[0].identity == ("serial", "1652662292730")
    assert evidence.devices[0].figures["device_id"] == "0x2330"


@pytest.mark.parametrize(
    ("old", "new", "verdict", "code"),
    [
        (
            "DRAM Uncorrectable            : 0",
            "DRAM Uncorrectable            : 2",
            "fail",
            "ecc_uncorrected",
        ),
        (
            "DRAM Correctable              : 0",
            "DRAM Correctable              : 3",
            "warn",
            "ecc_corrected",
        ),
        (
            "Remapping Failure Occurred        : No",
            "Remapping Failure Occurred        : Yes",
            "fail",
            "remap_failure",
        ),
        (
            "Pending                           : No",
            "Pending                           : Yes",
            "fail",
            "remap_pending",
        ),
        (
            "Uncorrectable Error               : 0",
            "Uncorrectable Error               : 4",
            "warn",
            "used_history",
        ),
        (
            "Device Id                         : 0x233010DE",
            "Device Id                         : 0x233110DE",
            "fail",
            "model_mismatch",
        ),
        (
            "Total                             : 81559 MiB",
            "Total                             : 40960 MiB",
            "fail",
            "memory_size",
        ),
        (
            "Current Power Limit               : 700.00 W",
            "Current Power Limit               : 500.00 W",
            "fail",
            "power_limit_below_default",
        ),
        (
            "SM                                : 1980 MHz",
            "SM                                : 2100 MHz",
            "fail",
            "max_sm_differs",
        ),
        (
            "HW Thermal Slowdown           : Not Active",
            "HW Thermal Slowdown           : Active",
            "fail",
            "throttle",
        ),
        (
            "GPU Recovery Action                   : None",
            "GPU Recovery Action                   : Reset",
            "fail",
            "recovery_action",
        ),
        (
            "SRAM Threshold Exceeded       : No",
            "SRAM Threshold Exceeded       : Yes",
            "fail",
            "sram_threshold",
        ),
        (
            "Unrepairable Memory               : No",
            "Unrepairable Memory               : Yes",
            "fail",
            "unrepairable",
        ),
        (
            "State                             : Completed",
            "State                             : In Progress",
            "warn",
            "fabric_state",
        ),
        (
            "GPU Current Temp                  : 33 C",
            "GPU Current Temp                  : ERR!",
            "fail",
            "nvml_error",
        ),
        (
            "Remapping Failure Occurred        : No",
            "Remapping Failure Occurred        : N/A",
            "inconclusive",
            "no_remap",
        ),
        (
            "Replays Since Reset               : 0",
            "Replays Since Reset               : 41",
            "warn",
            "pcie_replay",
        ),
    ],
)
def test_one_changed_line_changes_one_verdict(old, new, verdict, code):
    assert old in QUERY
    head, tail = QUERY.split(FIRST, 1)
    evidence = read(head + FIRST + tail.replace(old, new, 1))
    assert code in codes(evidence)
    assert (evidence.verdict, evidence.devices[0].verdict, evidence.devices[1].verdict) == (
        verdict,
        verdict,
        "pass",
    )


def test_a_distance_to_the_limit_is_no_temperature():
    assert (
        read(
            QUERY.replace(
                "T.Limit Temp                  : 46 C", "T.Limit Temp                  : 99 C"
            )
        ).verdict
        == "pass"
    )


def test_a_lost_card_fails_the_file():
    text = (
        QUERY.split("GPU 00000000:29")[0]
        + "Unable to determine the device handle for GPU0000:29:00.0: Unknown Error\n"
    )
    evidence = read(text)
    assert evidence.verdict == "fail"
    assert (evidence.findings[0].code, evidence.findings[0].device) == ("gpu_lost", "0000:29:00.0")
    assert evidence.complete is False


def test_a_serial_twice_fails_both_cards():
    evidence = read(QUERY.replace("1652540786392", "1652662292730"))
    assert [d.verdict for d in evidence.devices] == ["fail", "fail"]


def test_serials_that_were_not_delivered_are_flagged():
    evidence = read(QUERY, serials=["1652662292730", "9"])
    assert "serial_not_delivered" in codes(evidence, 1)
    assert codes(evidence, 0) == []


def test_fewer_cards_than_ordered_prove_too_little():
    evidence = read(QUERY, quantity=4)
    assert evidence.verdict == "inconclusive"
    assert "devices_missing" in [c.code for c in evidence.cautions]


def test_one_file_for_two_servers_fails():
    both = "".join(f"node1: {line}\nnode2: {line}\n" for line in QUERY.splitlines() if line)
    evidence = read(both)
    assert set(evidence.hosts) == {"node1", "node2"}
    assert {d.verdict for d in evidence.devices} == {"fail"}
    assert "same_card_on_two_hosts" in codes(evidence)


@pytest.mark.parametrize("separator", ["===== {} =====", "---------------\n{}\n---------------"])
def test_banners_separate_hosts(separator):
    other = QUERY
    for a, b in (
        ("1652662292730", "71"),
        ("1652540786392", "72"),
        ("3af216cf", "11111111"),
        ("49310e7f", "22222222"),
    ):
        other = other.replace(a, b)
    evidence = read(
        f"{separator.format('gpu-a01')}\n{QUERY}\n{separator.format('gpu-a02')}\n{other}\n"
    )
    assert evidence.verdict == "pass"
    assert [d.host for d in evidence.devices] == ["gpu-a01", "gpu-a01", "gpu-a02", "gpu-a02"]


def rows(n=433, minutes=10, cell="0x0000000000000004"):
    header = (
        "timestamp, index, uuid, name, serial, temperature.gpu, utilization.gpu [%], power.draw [W], "
        "clocks.current.sm [MHz], clocks_event_reasons.active, ecc.errors.uncorrected.volatile.total"
    )
    lines = [header]
    for k in range(n):
        minute = k * minutes
        stamp = f"2026/03/{2 + minute // 1440:02} {minute % 1440 // 60:02}:{minute % 60:02}:00.123"
        for g in range(2):
            lines.append(
                f"{stamp}, {g}, GPU-aeb881b9-1e82-8d13-e31d-4710aac0b01{g}, NVIDIA H100 80GB HBM3, 16532676705{g}, "
                f"63, 100 %, 690.50 W, 1905 MHz, {cell}, 0"
            )
    return lines


def csv(lines):
    return read("\n".join(lines) + "\n")


def test_a_continuous_loaded_log_of_72_hours_passes():
    evidence = csv(rows())
    assert (evidence.verdict, evidence.complete) == ("pass", True)
    assert evidence.metrics["span_hours"] == 72.0


def test_units_in_cells_may_be_missing():
    lines = [line.replace(" %", "").replace(" W", "").replace(" MHz", "") for line in rows()]
    assert csv(lines).verdict == "pass"


@pytest.mark.parametrize(
    ("lines", "verdict", "code"),
    [
        (rows(400), "inconclusive", "duration_not_proven"),
        ([*rows()[:300], *rows()[340:]], "inconclusive", "gap_in_log"),
        ([*rows()[:300], *rows()[20:24], *rows()[300:]], "inconclusive", "clock_backwards"),
        (rows()[1:], "inconclusive", "no_header"),
        (rows(1), "inconclusive", "snapshot"),
        ([*rows()[:-1], rows()[-1][:60]], "inconclusive", "truncated_last_line"),
    ],
)
def test_what_does_not_prove_72_hours_is_inconclusive(lines, verdict, code):
    evidence = csv(lines)
    assert evidence.verdict == verdict
    assert code in [c.code for c in evidence.cautions]


def test_locked_clocks_void_the_test_and_idle_cards_prove_nothing():
    assert codes(csv(rows(cell="0x0000000000000002"))) == ["clocks_locked"]
    idle = [line.replace("100 %", "3 %") for line in rows()]
    assert codes(csv(idle)) == ["not_loaded"]


def test_a_spreadsheets_commas_are_read_as_decimals_and_told():
    lines = [line.replace(", ", ";").replace("690.50", "690,50") for line in rows()]
    evidence = csv([lines[0], *(line.replace(".123", "") for line in lines[1:])])
    assert evidence.verdict == "warn"
    assert "edited_by_spreadsheet" in [c.code for c in evidence.cautions]


def test_xml_of_a_loop_keeps_a_fault_seen_in_an_earlier_document():
    text = content("15_nvidia_smi_qx_identity_mismatch.xml").decode()
    faulty = text.replace("<gpu_temp>33 C</gpu_temp>", "<gpu_temp>[GPU is lost]</gpu_temp>", 1)
    evidence = read(faulty + text)
    assert evidence.counts["documents"] == 2
    assert len(evidence.devices) == 4
    assert "nvml_error" in codes(evidence)


def test_xml_cut_off_keeps_what_whole_cards_show():
    text = content("15_nvidia_smi_qx_identity_mismatch.xml").decode()
    evidence = read(text[: int(len(text) * 0.7)], expected_device_id="0x2330")
    assert evidence.complete is False
    assert evidence.verdict == "fail"
    assert len(evidence.devices) == 2
