"""Forms of each format that the samples do not show: other versions, wrappers of parallel shells, other views."""

import csv
import io
import json
import re
from datetime import datetime

import pytest

from procurement.evidence.policy import EvidenceContext
from procurement.evidence.read import read_evidence
from tests.procurement.evidence.samples import FOLDER, content

SKIPPED = content("07_dcgmi_diag_v3_table_all_skipped.txt").decode()
TABLE = SKIPPED.replace("Skip - All", "Pass - All")
NCCL = content("11_nccl_allreduce_8xh100_ok.txt").decode()
SACCT = content("22_sacct_parsable2_month.psv").decode()
DMESG = content("18_dmesg_T_xid_mixed.txt").decode()


def read(text, **context):
    data = text if isinstance(text, bytes) else text.encode()
    return read_evidence(data, context=EvidenceContext.from_json(context))


def cautions(evidence):
    return {caution.code for caution in evidence.cautions}


def labelled(label, text):
    return "".join(f"{label}{line}\n" for line in text.splitlines())


FAILED = TABLE.replace("PCIe                      | Pass", "PCIe                      | Fail")


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda host, text: labelled(f"{host}: ", text),
        lambda host, text: labelled(f"[pod/{host}/diag] ", text),
        lambda host, text: labelled(f"{host}  | ", text),
        lambda host, text: labelled(f"{host}\t", text),
        lambda host, text: f"{host} | CHANGED | rc=0 >>\n{text}",
        lambda host, text: f"---------------\n{host}\n---------------\n{text}",
        lambda host, text: labelled("2026-03-03T02:17:45.1Z ", labelled(f"[pod/{host}/x] ", text)),
    ],
)
def test_each_host_of_a_parallel_shell_is_judged_apart(wrapped):
    both = wrapped("node-1", TABLE) + wrapped("node-2", TABLE)
    evidence = read(both)
    assert (evidence.verdict, evidence.hosts) == ("pass", ("node-1", "node-2"))
    assert len(evidence.devices) == 8
    assert read(wrapped("node-1", TABLE) + wrapped("node-2", FAILED)).verdict == "fail"
    assert read(wrapped("node-1", TABLE) + wrapped("node-2", SKIPPED)).verdict == "inconclusive"


@pytest.mark.parametrize(
    "label", ["[prterun-gpu-a01-9@1,0]<stdout>: ", "[1,0]<stdout>:", "2026-03-03T02:17:45.123Z "]
)
def test_labels_of_launchers_and_collectors_are_taken_off(label):
    evidence = read(labelled(label, NCCL))
    assert (evidence.verdict, evidence.hosts) == ("pass", ("gpu-a01",))


def test_a_table_that_names_no_device_binds_to_none():
    """DCGM 2.x prints no metadata: all devices passed, and nobody can tell how many there are."""
    lines = [
        line for line in TABLE.splitlines() if not re.search("Metadata|Version|Device IDs", line)
    ]
    evidence = read("\n".join(lines) + "\n")
    assert (evidence.verdict, evidence.devices) == ("inconclusive", ())
    assert "no_devices" in cautions(evidence)
    assert "all_hardware_tests_skipped" not in cautions(evidence)


def diag_3(status="Pass", key="gpu_ids"):
    def test(name, *results):
        return {"name": name, "results": list(results)}

    each = [{key: str(gpu), "status": status} for gpu in range(2)]
    return json.dumps(
        {
            "DCGM GPU Diagnostic": {
                "test_categories": [
                    {"category": "Deployment", "tests": [test("Denylist", {key: "0,1", "status": "Pass"})]},
                    {"category": "Hardware", "tests": [test("GPU Memory", *each), test("Diagnostic", *each)]},
                ],
                "version": "3.1.8",
            },
            "Driver Version Detected": "535.129.03",
            "GPU Device IDs": ["20b2", "20b2"],
        }
    )  # fmt: skip


@pytest.mark.parametrize("key", ["gpu_ids", "gpu_id"])
def test_dcgm_3_json_in_both_spellings(key):
    assert read("Successfully ran diagnostic for group.\n" + diag_3(key=key)).verdict == "pass"
    assert read(diag_3("Not Run", key)).verdict == "inconclusive"
    assert read(diag_3("Skip", key)).verdict == "inconclusive"
    assert read(diag_3("Fail", key)).verdict == "fail"


@pytest.mark.parametrize("root", ["DCGM Diagnostic", "DCGM GPU Diagnostic"])
def test_a_diagnostic_that_could_not_start_is_inconclusive(root):
    assert (
        read(json.dumps({root: {"runtime_error": "busy", "version": "4.2.3"}})).verdict
        == "inconclusive"
    )


def test_a_scrape_with_a_blank_for_a_health_counter_is_inconclusive():
    labels = 'gpu="0",UUID="GPU-aeb881b9-1e82-8d13-e31d-4710aac0b014",Hostname="a",modelName="NVIDIA H100 80GB HBM3"'
    values = {
        "XID_ERRORS": "0", "GPU_TEMP": "60", "ROW_REMAP_FAILURE": "0",
        "UNCORRECTABLE_REMAPPED_ROWS": "0", "ECC_DBE_VOL_TOTAL": "0",
    }  # fmt: skip

    def scrape(**changes):
        return "".join(f"DCGM_FI_DEV_{k}{{{labels}}} {v}\n" for k, v in (values | changes).items())

    assert read(scrape()).verdict == "pass"
    for name in ("XID_ERRORS", "ROW_REMAP_FAILURE", "ECC_DBE_VOL_TOTAL"):
        assert read(scrape(**{name: "NaN"})).verdict == "inconclusive"
        assert read(scrape(**{name: "9223372036854775794"})).verdict == "inconclusive"
    assert read(scrape(ECC_DBE_VOL_TOTAL="2")).verdict == "fail"


@pytest.mark.parametrize(
    "text",
    [
        labelled("", re.sub(r"^\[[^\]]*\] ", "kern  :err   : [Tue Mar  3 02:17:45 2026] ", DMESG, flags=re.M)),
        re.sub(r"^\[[^\]]*\] ", "[ 123.456789] ", DMESG, flags=re.M),
        re.sub(r"^\[[^\]]*\] ", "", DMESG, flags=re.M),
    ],
)  # fmt: skip
def test_a_kernel_log_in_any_of_dmesgs_forms(text):
    verdicts = {device.bus: device.verdict.value for device in read(text).devices}
    assert verdicts["0000:9b:00"] == verdicts["0000:4e:00"] == verdicts["0000:bb:00"] == "fail"
    assert verdicts["0000:29:00"] == "warn"


XID = {
    "MESSAGE": "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', GPU has fallen off the bus.",
    "_TRANSPORT": "kernel", "_HOSTNAME": "n1", "__REALTIME_TIMESTAMP": "1772500000000000",
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([XID, XID], indent=1),
        json.dumps([XID, XID]),
        json.dumps(XID, indent="\t") + "\n" + json.dumps(XID, indent="\t"),
        "data: " + json.dumps(XID) + "\n\ndata: " + json.dumps(XID) + "\n",
    ],
)
def test_a_journal_as_an_array_spread_over_lines_or_as_events(text):
    evidence = read(text)
    assert (evidence.verdict, evidence.devices[0].bus) == ("fail", "0000:9b:00")


def test_sacct_without_a_header_is_known_and_says_so():
    evidence = read("".join(SACCT.splitlines(keepends=True)[1:]))
    assert (evidence.format, evidence.review_verdict) == ("slurm_sacct", "inconclusive")
    assert "no_header" in cautions(evidence)


def test_sacct_in_every_separator_tells_the_same():
    wanted = read(SACCT).metrics
    for text in (
        labelled("", SACCT).replace("\n", "|\n"),
        SACCT.replace(",", ";").replace("|", ","),
        SACCT.replace("|", "|#"),
        SACCT.replace("|Planned|", "|Reserved|"),
    ):
        assert read(text).metrics == wanted


GOOD = content("25_nvbandwidth_text_na_matrix.txt").decode()


def nvbandwidth(**first):
    host = {
        "name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_description": "memcpy (GB/s)",
        "bandwidth_matrix": [["55.1", "55.2"]], "sum": 110.3,
    }  # fmt: skip
    peer = {
        "name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_description": "memcpy (GB/s)",
        "bandwidth_matrix": [["N/A", "391.1"], ["391.2", "N/A"]], "sum": 782.3,
    }  # fmt: skip
    return json.dumps(
        {"nvbandwidth": {"Driver Version": "570.1", "testcases": [host | first, peer]}}
    )


def test_a_waived_path_to_the_host_is_not_measured():
    limit = {"policy_used": {"h2d_min_gbs": 52}}
    assert read(nvbandwidth(), **limit).verdict == "pass"
    assert read(nvbandwidth(status="Waived"), **limit).verdict == "inconclusive"
    assert read(nvbandwidth(status="Error"), **limit).verdict == "fail"
    assert read(nvbandwidth(bandwidth_matrix=[["55.1", "N/A"]]), **limit).verdict == "inconclusive"
    assert read(nvbandwidth(bandwidth_matrix=[["55.1", "0.00"]]), **limit).verdict == "fail"


def test_bandwidthtest_in_csv():
    row = "bandwidthTest-{}, Bandwidth = {} GB/s, Time = 0.001 s, Size = 32000000 bytes, NumDevsUsed = 1\n"
    rows = (
        row.format("H2D-Pinned", 12.3) + row.format("D2H-Pinned", 26.1) + row.format("D2D", 1157.0)
    )
    evidence = read(rows + "Result = PASS\n")
    assert (evidence.format, evidence.metrics["h2d_gbs"]) == ("cuda_bandwidthtest", 12.3)
    assert evidence.verdict == "inconclusive"  # it names no card


AMD = "gpu,gfx_activity,total_correctable_count,total_uncorrectable_count,total_deferred_count,hotspot,socket_power\n"


def test_amd_smi_in_csv_never_passes_alone_and_sees_errors():
    evidence = read(
        AMD + "0,99,0,0,0,71,740\n1,99,0,2,0,71,741\n2,99,0,0,0,N/A,740\n3,99,0,N/A,0,71,740\n"
    )
    assert [d.verdict.value for d in evidence.devices] == [
        "pass",
        "fail",
        "inconclusive",
        "inconclusive",
    ]
    assert read(AMD + "0,99,0,0,0,71,740\n").verdict == "warn"
    assert read(AMD + "0,99,0,0\n").verdict == "inconclusive"


def test_rocm_smi_in_csv():
    head = "device,Temperature (Sensor junction) (C),Average Graphics Package Power (W),GPU use (%),Serial Number\n"
    rows = "card0,61.0,540.0,100,692000000119\ncard1,125.0,540.0,100,692000000120\n"
    evidence = read(head + rows)
    assert evidence.format == "rocm_smi_csv"
    assert [d.verdict.value for d in evidence.devices] == ["pass", "fail"]
    assert read(head + rows.splitlines()[0] + "\n").verdict == "warn"
    assert "cards_missing" in cautions(read(head + rows.splitlines()[1] + "\n"))


def test_dies_of_one_module_bear_one_id_and_one_serial_number():
    """A cut in the middle joined the head of one card to the tail of another, which was the failing one."""
    sample = json.loads(content("29_rocm_smi_json_dual_die.json").decode().split("\n\n", 1)[1])
    first, second, failing = sample["card0"], sample["card1"], sample["card2"]
    assert read(json.dumps({"card0": first, "card1": second})).verdict == "pass"
    joined = second | {"Serial Number": failing["Serial Number"], "PCI Bus": failing["PCI Bus"]}
    assert read(json.dumps({"card0": first, "card1": joined})).verdict == "inconclusive"
    alone = {key: value for key, value in second.items() if key != "Unique ID"}
    assert read(json.dumps({"card0": alone})).verdict == "inconclusive"


def test_ascends_other_views_give_serial_numbers_and_errors():
    board = "\tNPU ID                         : 3\n\tSerial Number                  : 033JXX10Q1000123\n"
    assert read(board).devices[0].identity == ("serial", "033JXX10Q1000123")
    assert read(board).verdict == "warn"
    ecc = "\tNPU ID : 3\n\tHBM Single Bit Error Count : 0\n\tHBM Double Bit Error Count : {}\n"
    assert [read(ecc.format(n)).verdict for n in ("0", "2", "-")] == [
        "warn",
        "fail",
        "inconclusive",
    ]


SMI = (FOLDER / "variants" / "nvidia_smi_q_h100.txt").read_text()


def test_fewer_cards_described_than_attached_is_a_lost_card_unless_the_file_is_cut():
    assert read(SMI).verdict == "pass"
    evidence = read(
        SMI.replace(
            "Attached GPUs                             : 2",
            "Attached GPUs                             : 3",
        )
    )
    assert (evidence.verdict, {f.code for f in evidence.findings}) == ("fail", {"gpu_missing"})
    assert read(SMI[: len(SMI) - 900]).verdict == "inconclusive"


def test_a_query_log_that_a_spreadsheet_quoted_is_read_and_told():
    rows = [
        line.split(", ")
        for line in content("16_nvidia_smi_query_burnin_units.csv").decode().splitlines()
    ]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    original, evidence = read(content("16_nvidia_smi_query_burnin_units.csv")), read(out.getvalue())
    assert [d.identity for d in evidence.devices] == [d.identity for d in original.devices]
    assert "edited_by_spreadsheet" in cautions(evidence)


# --- several machines, dead processes, other locales and precisions ---------------------------------------------------


def _as_of_another_machine(text: str) -> str:
    return re.sub(r'("serial_num"\s*:\s*")(\d)', r"\g<1>9", text)


def test_diagnostics_of_two_machines_in_one_file_are_judged_apart():
    one = content("01_dcgmi_diag_v4_r3_all_pass.json").decode()
    failing = json.loads(_as_of_another_machine(one))
    for category in failing["DCGM Diagnostic"]["test_categories"]:
        for test in category["tests"]:
            if test["name"] == "memory":
                test["results"][0] |= {
                    "status": "Fail",
                    "warnings": [
                        {"warning": "DBE", "error_id": 4, "error_category": 10, "error_severity": 2}
                    ],
                }
    both = read_evidence(f"{one}\n{_as_of_another_machine(one)}".encode())
    assert (both.verdict, len(both.devices), len({d.serial for d in both.devices})) == (
        "pass",
        16,
        16,
    )
    assert {d.index for d in both.devices} == set(range(8))
    for text in (f"{one}\n{json.dumps(failing)}", f"{json.dumps(failing)}\n{one}"):
        found = read_evidence(text.encode())
        failed = [d.serial for d in found.devices if d.verdict == "fail"]
        assert found.verdict == "fail"
        assert len(failed) == 1
        assert failed[0].startswith("9")


@pytest.mark.parametrize(
    "line",
    [
        "[gpu-a01:1234] *** Process received signal ***",
        "mpirun noticed that process rank 3 with PID 77 on node gpu-a01 exited on signal 9 (Killed).",
        "srun: error: gpu-a01: task 3: Segmentation fault (core dumped)",
    ],
)
@pytest.mark.parametrize("name", ["11_nccl_allreduce_8xh100_ok.txt", "27_hpl_8gpu_passed.txt"])
def test_a_process_that_died_leaves_nothing_proven(name, line):
    context = EvidenceContext.from_json({"vendor_promise": {"hpl_tflops_min": 300}})
    data = content(name)
    assert read_evidence(data, context=context).verdict == "pass"
    assert read_evidence(data + f"\n{line}\n".encode(), context=context).verdict == "inconclusive"


STAMPS = {
    "en_US": lambda d: f"{d:%a %d %b %Y %I:%M:%S %p} UTC",
    "de_DE": lambda d: (
        f"Mo {d.day}. "
        f"{'Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez'.split()[d.month - 1]} {d:%H:%M:%S} UTC {d.year}"
    ),
    "fr_FR": lambda d: f"lun. {d.day:02} mars {d.year} {d:%H:%M:%S} UTC",
    "zh_CN": lambda d: f"{d.year}年 {d.month:02}月 {d.day:02}日 星期一 {d:%H:%M:%S} UTC",
}


@pytest.mark.parametrize("locale", STAMPS)
def test_a_burn_in_is_read_in_the_locale_of_whoever_ran_it(locale):
    text = content("08_gpu_burn_72h_ok_carriage_returns.log").decode()

    def other(found):
        moment = datetime.strptime(found[2].strip(), "%a %b %d %H:%M:%S UTC %Y")
        return found[1] + STAMPS[locale](moment)

    data = re.sub(r"(Summary at:\s+)([^\n]+)", other, text)
    assert data != text
    found = read_evidence(data.encode())
    assert found.verdict == "pass"
    assert found.metrics["last_summary_at"] == "2026-03-05T08:00:00Z"


def test_a_mixed_precision_run_is_not_held_against_a_promise_of_hpl():
    text = content("27_hpl_8gpu_passed.txt").decode()
    text = "HPL-MxP Benchmark 24.9\n" + text.replace("3.5716e+05", "3.5716e+06")
    context = EvidenceContext.from_json({"vendor_promise": {"hpl_tflops_min": 300}})
    found = read_evidence(text.encode(), context=context)
    assert found.verdict != "pass"
    assert found.variant == "HPL-MxP"


def test_what_amds_tools_list_of_bad_memory_counts_where_it_stands():
    rocm = json.loads(content("29_rocm_smi_json_dual_die.json").decode().split("\n\n", 1)[1])
    del rocm["card2"]
    assert read_evidence(json.dumps(rocm).encode()).verdict == "pass"
    for key, verdict in (("RAS UMC uncorrectable count", "fail"), ("Retired pages", "warn")):
        worse = {**rocm, "card0": {**rocm["card0"], key: "2"}}
        assert read_evidence(json.dumps(worse).encode()).verdict == verdict


def test_an_assertion_of_nvbandwidth_is_wrong_data():
    data = content("25_nvbandwidth_text_na_matrix.txt")
    assert read_evidence(data + b"\nASSERT_EQ failed in memcpy.cu:120\n").verdict == "fail"


def test_an_xid_or_sxid_that_is_not_understood_is_no_silence():
    """A log over the whole time without a fault passes: a line that nobody could read must not look like silence."""
    window = {
        "order_context": {
            "window_start": "2026-03-01T00:00:00+00:00",
            "window_end": "2026-03-04T00:00:00+00:00",
        }
    }
    first = "2026-02-28T00:00:00+00:00 n1 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n"
    last = "2026-03-05T00:00:00+00:00 n1 kernel: NVRM: still here\n"
    at = "2026-03-02T02:17:45+00:00 n1 kernel: "
    assert read(first + last, **window).verdict == "pass"
    odd = read(f"{first}{at}NVRM: Xid (0000:65:00): 48 pid=12, DBE\n{last}", **window)
    assert (odd.verdict, odd.counts["xid_not_read"]) == ("inconclusive", 1)
    switch = f"{at}nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, "
    rest = read(f"{first}{switch}Severity 1 Engine instance 33\n{last}", **window)
    assert rest.verdict == "warn"
    assert {finding.code for finding in rest.findings} == {"nvswitch_sxid_20034"}
    whole = read(
        f"{first}{switch}Fatal, Link 46 x\n{switch}Severity 1 Engine instance 33\n{last}", **window
    )
    assert {finding.code for finding in whole.findings} == {"nvswitch_sxid_20034_fatal"}


def test_an_all_reduce_that_was_checked_in_one_place_only_is_not_checked():
    once = re.sub(r"^( +\d+ +\d+ +float.*) 0$", r"\1 N/A", NCCL, flags=re.M)
    assert once != NCCL
    assert read(once).verdict == "inconclusive"


def test_errors_that_the_exporter_counts_by_code_are_read():
    labels = 'gpu="0",UUID="GPU-aeb881b9-1e82-8d13-e31d-4710aac0b014",Hostname="a",xid="79"'
    head = "# HELP DCGM_EXP_XID_ERRORS_COUNT Count\n# TYPE DCGM_EXP_XID_ERRORS_COUNT gauge\n"
    assert read(f"{head}DCGM_EXP_XID_ERRORS_COUNT{{{labels}}} 2\n").verdict == "fail"
    assert read(f"{head}DCGM_EXP_XID_ERRORS_COUNT{{{labels}}} 0\n").verdict == "inconclusive"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Error: Unable to connect to host engine. Host engine connection invalid/disconnected.\n", "reject"),
        ("dcmi model initialized failed, because the device is used. ret is -8020\n", "reject"),
        (json.dumps({"nvbandwidth": {"error": "CUDA_ERROR_NO_DEVICE"}}), "fail"),
        (json.dumps({"DCGM Diagnostic": {"runtime_error": "Couldn't parse json: ''"}}), "inconclusive"),
        (json.dumps({"version": "3.1.7", "runtime_error": "The DCGM diagnostic is already running"}), "inconclusive"),
        ("[ 12.345678] NVRM: Xid (PCI:0000:19:00): 94, pid=1, name=x, Contained: SM (0x1). RST: No\n", "fail"),
        ("[ 12.345678] NVRM: Xid (PCI:0000:cb:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 02 (0x4 0x0)\n", "fail"),
        ("[ 12.345678] NVRM: Xid (PCI:0000:19:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 08 (0x0 0x1)\n", "warn"),
        (NCCL + "node1: Test NCCL failure common.cu:1005 'unhandled system error'\n", "fail"),
        (NCCL.replace("# Out of bounds values : 0 OK", "# Out of bounds values : 12 FAILED"), "fail"),
        (json.dumps({"card0": {"GPU ID": "0x74a1", "Temperature (Sensor junction) (C)": "N/A"}}), "inconclusive"),
        ("gpu,gfx_activity,hotspot_temperature,total_uncorrectable_count\n0,100,60,2\n", "fail"),
        ("HPL-NVIDIA 24.06.0\nHPL_MxP   190464  2048  4  2  10.5  1.0e+06\n", "inconclusive"),
    ],
)  # fmt: skip
def test_shapes_that_people_report_are_read_right_or_refused(text, verdict):
    assert read(text).verdict == verdict
