import pytest

from procurement.evidence.policy import EvidenceContext
from procurement.evidence.read import read_evidence
from tests.procurement.evidence.samples import content, read

HEADER = (
    "Burning for {seconds} seconds.\n"
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aeb881b9-1e82-8d13-e31d-4710aac0b014)\n"
    "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-506a2f4a-aab1-bb5c-ca7a-2617b79d18bc)\n"
)
TABLE = "Tested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: OK\n"


def record(
    percent, *, speeds=(500_000, 500_100), errors=("0", "0"), temps=("60 C", "61 C"), work=None
):
    work = work or [str(int(percent * 1000) + i) for i in range(len(speeds))]
    done = " - ".join(f"{w} ({s} Gflop/s)" for w, s in zip(work, speeds, strict=True))
    return f"\r{percent:.1f}%  proc'd: {done}   errors: {' - '.join(errors)}   temps: {' - '.join(temps)} "


def summary(hour, day=2):
    return f"\n\tSummary at:   Mon Mar  {day} {hour:02}:00:00 UTC 2026\n\n"


def log(*middle, seconds=259200, table=TABLE):
    """A whole 72-hour run with `middle` between its first and its last record."""
    return (
        HEADER.format(seconds=seconds)
        + record(5.0)
        + summary(0)
        + "".join(middle)
        + record(100.0)
        + summary(23, day=4)
        + table
    ).encode()


def test_a_whole_clean_run_passes():
    evidence = read_evidence(log(record(50.0)))
    assert evidence.verdict == "pass"
    assert [d.identity for d in evidence.devices] == [
        ("uuid", "gpu-aeb881b9-1e82-8d13-e31d-4710aac0b014"),
        ("uuid", "gpu-506a2f4a-aab1-bb5c-ca7a-2617b79d18bc"),
    ]


def test_errors_are_the_sum_of_each_windows_maximum():
    evidence = read_evidence(
        log(
            record(20.0, errors=("0", "2  (WARNING!)")),
            record(21.0, errors=("0", "3  (WARNING!)")),
            summary(12),
            record(30.0, errors=("0", "4  (WARNING!)")),
            summary(23),
        )
    )
    first, second = evidence.devices
    assert first.verdict == "pass"
    assert (second.verdict, second.figures["compute_errors"]) == ("fail", 7)
    assert second.reasons[0].threshold == 0
    assert second.reasons[0].where.startswith("line ")


def test_a_dead_process_fails_its_device_only():
    evidence = read_evidence(
        log(record(50.0, work=["50000", "-1"], errors=("0", "-3  (DIED!)"), temps=("60 C", "--")))
    )
    assert [d.verdict for d in evidence.devices] == ["pass", "fail"]
    assert [r.code for r in evidence.devices[1].reasons] == ["process_died"]


def test_zeros_before_a_devices_first_figure_are_no_measurements():
    head = HEADER.format(seconds=259200) + record(0.1, speeds=(500_000, 0), work=["1", "0"])
    evidence = read_evidence((head + log().decode().split(")\n", 2)[2]).encode())
    assert evidence.devices[1].figures["min_gflops"] == 500_100


def test_a_card_that_stalls_later_fails():
    evidence = read_evidence(log(record(50.0, speeds=(500_000, 0))))
    assert evidence.devices[1].verdict == "fail"
    assert evidence.devices[1].figures["min_gflops"] == 0


@pytest.mark.parametrize("seconds", [3600, 259199])
def test_a_run_under_72_hours_proves_too_little(seconds):
    evidence = read_evidence(log(seconds=seconds))
    assert evidence.verdict == "inconclusive"
    assert "too_short" in [r.code for r in evidence.devices[0].reasons]


def test_the_contract_may_ask_for_less():
    context = EvidenceContext.from_json({"policy_used": {"min_hours": 1}})
    evidence = read_evidence(log(seconds=3600), context=context)
    assert evidence.verdict == "pass"
    assert evidence.policy_version.endswith("+contract")


def test_stamps_that_show_less_time_than_claimed_prove_nothing():
    data = log().replace(b"Mar  4 23:00", b"Mar  2 01:00")
    evidence = read_evidence(data)
    assert evidence.verdict == "inconclusive"
    assert "stamps_disagree" in [c.code for c in evidence.cautions]


def test_stamps_that_run_backwards_are_flagged():
    evidence = read_evidence(log().replace(b"Mar  4 23:00", b"Mar  1 23:00"))
    assert evidence.verdict == "inconclusive"
    assert "clock_backwards" in [c.code for c in evidence.cautions]


def test_every_run_in_a_file_must_pass():
    bad = log().replace(b"GPU 1: OK", b"GPU 1: FAULTY")
    evidence = read_evidence(bad + log())
    assert evidence.verdict == "fail"
    assert evidence.counts["runs"] == 2


def test_hosts_of_a_parallel_shell_are_kept_apart():
    lines = log(record(50.0)).decode().replace("\r", "\n").splitlines()
    other = [line.replace("aeb881b9", "aaaaaaaa").replace("506a2f4a", "bbbbbbbb") for line in lines]
    mixed = "".join(f"node1: {a}\nnode2: {b}\n" for a, b in zip(lines, other, strict=True))
    evidence = read_evidence(mixed.encode())
    assert evidence.hosts == ("node1", "node2")
    assert len(evidence.devices) == 4
    assert evidence.verdict == "pass"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_encodings_do_not_change_the_verdict(encoding):
    data = content("08_gpu_burn_72h_ok_carriage_returns.log").decode().encode(encoding)
    assert read("08_gpu_burn_72h_ok_carriage_returns.log", data).verdict == "pass"


def test_colours_are_removed():
    data = log(record(50.0)).replace(b"GPU 0: OK", b"\x1b[1;32mGPU 0: OK\x1b[0m")
    evidence = read_evidence(data)
    assert evidence.verdict == "pass"
    assert "ansi" in [c.code for c in evidence.cautions]


def test_a_block_of_many_records_reads_like_its_records_one_by_one():
    records = [record(5 + n * 0.01, speeds=(500_000 + n, 500_000 - n)) for n in range(500)]
    together = read_evidence(log(*records)).devices
    apart = read_evidence(log(*(r + "\n" for r in records))).devices
    assert [d.figures for d in together] == [d.figures for d in apart]
    assert together[1].figures["min_gflops"] == 500_000 - 499
