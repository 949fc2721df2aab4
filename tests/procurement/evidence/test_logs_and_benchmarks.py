"""Kernel logs, NCCL, bandwidth, HPL, MLPerf, AMD and Ascend: the variants that the samples do not show."""

import json
import re

import pytest

from procurement.evidence.policy import EvidenceContext
from procurement.evidence.read import read_evidence
from procurement.evidence.stamps import locale_stamp
from procurement.log_times import last_moment
from tests.procurement.evidence.samples import FOLDER, content, expected


def read(text, **context):
    data = text if isinstance(text, bytes) else text.encode()
    return read_evidence(data, context=EvidenceContext.from_json(context))


def cautions(evidence):
    return {caution.code for caution in evidence.cautions}


def findings(evidence):
    return {finding.code for finding in evidence.findings}


def entry(message, transport="kernel"):
    fields = {
        "MESSAGE": message,
        "_TRANSPORT": transport,
        "_HOSTNAME": "n1",
        "__REALTIME_TIMESTAMP": "1772500000000000",
    }
    return json.dumps(fields) + "\n"


def test_a_journal_in_json_with_bytes_and_a_decoy():
    evidence = read(
        entry("NVRM: Xid (PCI:0000:9b:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x0)")
        + entry(list(b"NVRM: Xid (PCI:0000:3b:00): 63, pid='x', Row \xff"))
        + entry("grep NVRM: Xid (PCI:0000:00:00): 79, x", "syslog")
    )
    assert {d.bus: d.verdict.value for d in evidence.devices} == {
        "0000:9b:00": "fail",
        "0000:3b:00": "warn",
    }
    assert "decoy" in cautions(evidence)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("[ 12.345678] NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.", "fail"),
        (
            "2026-03-03T02:17:45,301122+08:00 NVRM: Xid (PCI:0000:9b:00): 145, NETIR Nonfatal XC0",
            "warn",
        ),
        (
            "Mar 03 02:17:45.123456 n1 kernel: NVRM: Xid (PCI:0000:9b:00): 31, pid=9, MMU Fault",
            "warn",
        ),
        (
            "[Tue Mar  3 02:17:45 2026] NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed",
            "warn",
        ),
        ("[Tue Mar  3 02:17:45 2026] NVRM: Xid (PCI:0000:9b:00): 999, something new", "warn"),
        ("[Tue Mar  3 02:17:45 2026] NVRM: GPU 0000:9b:00.0: RmInitAdapter failed! (0x24)", "fail"),
    ],
)
def test_forms_and_codes(line, verdict):
    evidence = read(line + "\n")
    assert (evidence.verdict, evidence.devices[0].bus) == (verdict, "0000:9b:00")


WINDOW = {"window_start": "2026-03-02T00:00:00+00:00", "window_end": "2026-03-05T00:00:00+00:00"}
QUIET = "{}T02:17:45+00:00 n1 kernel: usb 1-1: new device\n"


def test_silence_passes_only_over_the_whole_burn_in():
    whole = QUIET.format("2026-03-01") + QUIET.format("2026-03-06")
    assert read(whole, order_context=WINDOW).verdict == "pass"
    assert read(whole).verdict == "inconclusive"
    assert read(QUIET.format("2026-03-03"), order_context=WINDOW).verdict == "inconclusive"


NCCL = content("11_nccl_allreduce_8xh100_ok.txt").decode()
HEAD = "".join(line + "\n" for line in NCCL.splitlines()[:20])


def test_without_validation_nothing_is_proven():
    off = re.sub(r"\s+\d+(\s+[\d.]+\s+[\d.]+\s+[\d.]+)\s+\d+\n", r"    N/A\1    N/A\n", NCCL)
    evidence = read(off.replace("validation: 1", "validation: 0"))
    assert evidence.verdict == "inconclusive"
    assert {d.verdict.value for d in evidence.devices} == {"inconclusive"}


def test_a_crash_names_the_card_of_its_process():
    failure = (
        "gpu-a01: Test NCCL failure common.cu:1204 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '\n"
        " .. gpu-a01 pid 41003: Test failure common.cu:915\n"
    )
    evidence = read(HEAD + failure)
    assert (evidence.verdict, evidence.complete) == ("fail", False)
    assert [d.bus for d in evidence.devices if d.verdict == "fail"] == ["0000:4e:00"]


def test_a_missing_row_or_rank_is_missing():
    lines = NCCL.splitlines(keepends=True)
    row = next(i for i, text in enumerate(lines) if "1073741824" in text)
    assert "rows_missing" in cautions(read("".join(lines[:row] + lines[row + 1 :])))
    rank = next(i for i, text in enumerate(lines) if "Rank  3" in text)
    assert read("".join(lines[:rank] + lines[rank + 1 :])).verdict != "pass"


def test_a_model_without_a_limit_needs_a_person():
    evidence = read(NCCL.replace("NVIDIA H100 80GB HBM3", "AMD Instinct MI300X"))
    assert (evidence.verdict, "no_bandwidth_limit" in cautions(evidence)) == ("warn", True)


PATHS = content("25_nvbandwidth_text_na_matrix.txt").decode()
GEN4 = {"policy_used": {"h2d_min_gbs": 24}}


def test_one_slow_path_fails_the_node_and_blames_nobody():
    evidence = read(PATHS.replace("270.51", "130.51"), **GEN4)
    assert evidence.verdict == "fail"
    assert [d.verdict.value for d in evidence.devices] == [
        "pass",
        "inconclusive",
        "pass",
        "inconclusive",
    ]


@pytest.mark.parametrize(
    "text",
    ["Invalid value when checking the pattern at 0x7f", "[CUDA_ERROR_UNKNOWN] in expression x"],
)
def test_wrong_data_fails_whatever_the_speed(text):
    evidence = read(PATHS.replace("\nSUM device_to", f"\n{text}\n\nSUM device_to"), **GEN4)
    assert evidence.verdict == "fail"


HPL = content("27_hpl_8gpu_passed.txt").decode()


def test_hpl_needs_a_residual_and_a_promise():
    promise = {"vendor_promise": {"hpl_tflops_min": 340}}
    assert "residual_failed" in findings(
        read(HPL.replace("...... PASSED", "...... FAILED"), **promise)
    )
    assert read(HPL, vendor_promise={"hpl_tflops_min": 400}).verdict == "fail"
    assert read(HPL).verdict == "warn"
    assert read(HPL.replace("3.5716e+05", "9.5716e+05"), **promise).verdict == "inconclusive"


def test_mlperf_is_valid_without_errors_only():
    summary = content("28_mlperf_log_summary_valid_with_error.txt").decode()
    clean = summary.replace(
        "1 ERROR encountered. See detailed log.", "No errors encountered during test."
    )
    promise = {"vendor_promise": {"samples_per_s_min": 24000}}
    assert read(clean, **promise).verdict == "pass"
    assert (
        read(clean.replace("Result is : VALID", "Result is : INVALID"), **promise).verdict == "fail"
    )
    assert (
        read(clean.replace("PerformanceOnly", "AccuracyOnly"), **promise).verdict == "inconclusive"
    )


def card(index, **changes):
    ecc = {"total_correctable_count": 0, "total_uncorrectable_count": 0, "total_deferred_count": 0}
    return {
        "gpu": index,
        "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": f"0xAB{index}"},
        "bus": {"bdf": f"0000:0{index}:00.0"},
        "board": {"product_serial": f"69200000{index}"},
        "usage": {"gfx_activity": {"value": 99, "unit": "%"}},
        "power": {"socket_power": {"value": 740, "unit": "W"}, "throttle_status": "UNTHROTTLED"},
        "temperature": {
            "edge": "N/A",
            "hotspot": {"value": changes.pop("hotspot", 71), "unit": "C"},
        },
        "ras": {"bad_page_threshold_exceeded": changes.pop("bad", "N/A")},
        "ecc": ecc | changes,
    }


def test_amd_smi_in_both_layouts():
    cards = [
        card(0),
        card(1, total_uncorrectable_count=2),
        card(2, total_deferred_count=1),
        card(3, bad="True"),
        card(4, hotspot=105),
        card(5, total_uncorrectable_count="N/A"),
    ]
    for document in (cards, {"gpu_data": cards}):
        evidence = read("WARNING: missing groups: render\n" + json.dumps(document, indent=4))
        assert [d.verdict.value for d in evidence.devices] == [
            "pass",
            "fail",
            "warn",
            "fail",
            "fail",
            "inconclusive",
        ]
        assert evidence.devices[0].identity == ("serial", "692000000")


def test_ascend_with_two_chips_a_card_and_with_slots():
    a3 = (FOLDER / "variants" / "npu_smi_a3.txt").read_text()
    evidence = read(a3)
    assert {d.bus: d.verdict.value for d in evidence.devices}["0000:9B:00.0"] == "fail"
    assert evidence.counts["chips"] == 4
    assert read(a3.replace("Critical", "OK      ")).verdict == "pass"
    assert read((FOLDER / "variants" / "npu_smi_310p.txt").read_text()).verdict == "pass"


def test_a_chinese_encoding_is_converted_and_told():
    text = (FOLDER / "variants" / "npu_smi_a3.txt").read_text().replace(
        "Critical", "OK      "
    ) + "采集完成，主机正常\n"
    evidence = read(text.encode("gb18030"))
    assert (evidence.verdict, "gbk" in cautions(evidence)) == ("pass", True)


def test_rvs_needs_every_module_on_every_card():
    text = content("30_rvs_gst_iet_pebb_mi300x.txt").decode()
    good = text.replace("FALSE", "TRUE").replace("1102871.550", "1222871.550")
    assert read(good).verdict == "pass"
    without = "".join(line for line in good.splitlines(keepends=True) if "[iet-stress]" not in line)
    assert read(without).verdict == "inconclusive"


RVS = content("30_rvs_gst_iet_pebb_mi300x.txt").decode()
RVS_GOOD = RVS.replace("FALSE", "TRUE").replace("1102871.550", "1222871.550")


def test_rvs_without_its_beginning_or_out_of_order_proves_nothing():
    """The failing card's lines were in the part that is gone; what is left looks like a run of one good card."""
    rest = [
        line for line in RVS.splitlines(keepends=True) if "28851" in line and "0000" not in line
    ]
    assert read("018] Power(W) 641.000000\n" + "".join(rest)).verdict == "inconclusive"
    assert read("".join(rest)).verdict == "inconclusive"
    lines = RVS_GOOD.splitlines(keepends=True)
    lines[4], lines[9] = lines[9], lines[4]
    evidence = read("".join(lines))
    assert (evidence.verdict, "clock_backwards" in cautions(evidence)) == ("inconclusive", True)


def test_what_must_not_happen_in_the_samples():
    """The classic wrong answers that the samples' authors list, where a figure can show them."""
    prom = read(content("20_dcgm_exporter_metrics.prom"))
    assert prom.devices[3].figures.get("max_memory_temp_c") is None
    smi = read(content("17_nvidia_smi_query_na_and_lost_gpu.csv"))
    assert "gpu_lost" in findings(smi)
    log = read(content("19_syslog_multinode_concatenated.log"))
    assert {d.host: [r.code for r in d.reasons] for d in log.devices}["gpu-a03"] == ["xid92"]
    hpl = read(HPL, **{"vendor_promise": expected("27_hpl_8gpu_passed.txt")["vendor_promise"]})
    assert hpl.metrics["gflops"] == 357160.0


def test_hpl_tells_when_its_runs_began_and_ended():
    promise = {"vendor_promise": {"hpl_tflops_min": 340}}
    evidence = read(HPL, **promise)
    [start] = re.findall(r"start time +(.*)", HPL)
    [end] = re.findall(r"end time +(.*)", HPL)
    assert evidence.metrics["first"] == locale_stamp(start).text
    assert last_moment(evidence).replace(tzinfo=None) == locale_stamp(end).moment
    silent = read(re.sub(r"HPL_pdgesv.*", "", HPL), **promise)
    assert (silent.verdict, last_moment(silent)) == ("pass", None)
    backwards = HPL.replace(start, "X").replace(end, start).replace("X", end)
    assert read(backwards, **promise).verdict == "inconclusive"


def test_an_hpl_run_of_no_speed_proves_nothing():
    evidence = read(HPL.replace("3.5716e+05", "0.0000e+00"), vendor_promise={"hpl_tflops_min": 340})
    assert evidence.verdict == "fail"
    assert "figures_disagree" in cautions(evidence)


def test_a_card_under_a_damaged_name_is_missing():
    text = content("29_rocm_smi_json_dual_die.json").decode()
    evidence = read(text.replace('"card2"', '"c;ard2"'))
    assert (evidence.verdict, "cards_missing" in cautions(evidence)) == ("inconclusive", True)
