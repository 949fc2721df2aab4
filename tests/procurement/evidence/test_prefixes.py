"""Prefixes upon prefixes: launchers in parallel shells, collectors over both, and what they say themselves."""

import pytest

from procurement.evidence.prefixes import host_of
from procurement.evidence.read import read_evidence
from tests.procurement.evidence.samples import content, context, read

TABLE = (
    content("07_dcgmi_diag_v3_table_all_skipped.txt").decode().replace("Skip - All", "Pass - All")
)
FAILED = TABLE.replace("PCIe                      | Pass", "PCIe                      | Fail")
NCCL = content("11_nccl_allreduce_8xh100_ok.txt").decode()
BURN = "08_gpu_burn_72h_ok_carriage_returns.log"
JOURNAL = "Mar 03 02:17:45 {host} bench.sh[4242]: "


def labelled(label, text):
    return "".join(f"{label}{line}\n" for line in text.splitlines())


STACKS = {
    "pdsh over mpirun": "{host}: [1,0]<stdout>: ",
    "clush over prterun": "{host}: [prterun-head-9@1,0]<stdout>: ",
    "pdsh over srun -l": "{host}: 0: ",
    "srun -l over pdsh": " 3: {host}: ",
    "kubectl --prefix --timestamps": "[pod/{host}/diag] 2026-03-03T02:17:45.123456789Z ",
    "kubectl --prefix over mpirun": "[pod/launcher-x/c] [1,0][{host}:881]<stdout>: ",
    "journald over the tool": JOURNAL,
    "journald over mpirun": JOURNAL + "[1,0]<stdout>: ",
    "journald over pdsh over mpirun": "Mar 03 02:17:45 head run.sh[1]: {host}: [1,0]<stdout>: ",
    "journald, short-iso": "2026-03-03T02:17:45+0000 {host} bench.sh[7]: ",
    "journald, short-full": "Tue 2026-03-03 02:17:45 UTC {host} bench.sh[7]: ",
    "mpirun --timestamp-output under clush": "{host}: Tue Mar  3 02:17:45 2026[1,0]<stdout>:",
    "pdsh over torchrun": "{host}: [default0]:",
    "collector over kubectl over srun": "2026-03-03T02:17:45Z [pod/{host}/x] 0: ",
}


@pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)
def test_every_layer_is_taken_off_and_the_host_is_bound(stack):
    def wrapped(host, text):
        return labelled(stack.format(host=host), text)

    evidence = read_evidence((wrapped("node-1", TABLE) + wrapped("node-2", TABLE)).encode())
    assert (evidence.verdict, evidence.hosts) == ("pass", ("node-1", "node-2"))
    assert [device.host for device in evidence.devices] == ["node-1"] * 4 + ["node-2"] * 4
    one_fails = (wrapped("node-1", TABLE) + wrapped("node-2", FAILED)).encode()
    evidence = read_evidence(one_fails)
    assert evidence.verdict == "fail"
    assert {finding.host for finding in evidence.findings} == {"node-2"}


def test_a_bare_number_names_the_host_only_when_nothing_else_does():
    assert host_of(["node-1", "3"]) == ("node-1", "3")
    assert host_of(["3", "node-1"]) == ("node-1", "3")
    assert host_of([None, "3"]) == ("3", None)
    assert host_of(["head", None, "node-2"]) == ("node-2", None)
    text = labelled("1: [1,3]<stdout>:", NCCL)
    evidence = read_evidence(text.encode())
    assert evidence.verdict == "pass"
    assert "gpu-a01" in evidence.hosts


def test_two_tasks_of_one_host_are_judged_apart():
    text = labelled("node-1: 0: ", TABLE) + labelled("node-1: 1: ", FAILED)
    evidence = read_evidence(text.encode())
    assert evidence.verdict == "fail"
    assert len(evidence.devices) == 8
    assert {device.host for device in evidence.devices} == {"node-1"}


@pytest.mark.parametrize(
    "stack", ["{host}: ", "{host}: [1,0]<stdout>: ", JOURNAL, "[pod/{host}/x] "]
)
def test_records_behind_carriage_returns_belong_to_the_host_of_their_line(stack):
    """gpu-burn's records end with a carriage return: only the first of a line has the prefix."""
    lines = content(BURN).decode().split("\n")

    def wrapped(host):
        return "".join(stack.format(host=host) + line + "\n" for line in lines)

    plain = read(BURN)
    evidence = read(BURN, wrapped("node-1").encode())
    assert (evidence.format, evidence.hosts) == ("gpu_burn", ("node-1",))
    assert evidence.verdict == plain.verdict == "pass"
    assert [d.figures for d in evidence.devices] == [d.figures for d in plain.devices]


@pytest.mark.parametrize(
    "words",
    [
        "pdsh@head: node-3: ssh exited with exit code 255\n",
        "clush: node-3: exited with exit code 1\n",
        "srun: error: node-3: task 2: Exited with exit code 9\n",
    ],
)
def test_what_a_shell_says_of_a_host_is_not_lost(words):
    both = labelled("node-1: ", TABLE) + words + labelled("node-2: ", TABLE)
    evidence = read_evidence(both.encode())
    assert evidence.hosts == ("node-1", "node-2")
    assert evidence.verdict == "inconclusive"
    assert "launcher_error" in {caution.code for caution in evidence.cautions}


def test_the_service_manager_may_speak_between_the_lines():
    body = labelled(JOURNAL.format(host="node-1"), TABLE)
    started = "Mar 03 02:17:44 node-1 systemd[1]: Started diag.service - DCGM.\n"
    good = read_evidence((started + body).encode())
    assert (good.verdict, good.hosts) == ("pass", ("node-1",))
    bad = "Mar 03 03:17:44 node-1 systemd[1]: diag.service: Failed with result 'exit-code'.\n"
    assert read_evidence((started + body + bad).encode()).verdict == "inconclusive"


def test_unreachable_and_failed_hosts_of_ansible_and_pssh_are_told():
    head = "node-1 | CHANGED | rc=0 >>\n" + TABLE
    gone = (
        head + 'node-2 | UNREACHABLE! => {\n    "msg": "Failed to connect to the host via ssh"\n}\n'
    )
    evidence = read_evidence(gone.encode())
    assert evidence.verdict == "inconclusive"
    assert all(device.host == "node-1" for device in evidence.devices)
    pssh = f"[1] 23:11:04 [SUCCESS] node-1\n{TABLE}[2] 23:11:09 [SUCCESS] root@node-2\n{TABLE}"
    evidence = read_evidence(pssh.encode())
    assert (evidence.verdict, evidence.hosts) == ("pass", ("node-1", "node-2"))
    failed = pssh.replace(
        "[SUCCESS] root@node-2", "[FAILURE] root@node-2 Exited with error code 226"
    )
    assert read_evidence(failed.encode()).verdict == "inconclusive"


def test_a_kernel_log_keeps_its_own_times_and_hosts():
    """What looks like a journal's prefix is the evidence itself; another process that quotes an XID is none."""
    name = "19_syslog_multinode_concatenated.log"
    plain = read(name)
    stacked = labelled("2026-03-03T02:17:45Z ", content(name).decode())
    assert plain.format == "kernel_log_xid"
    inner = read_evidence(
        labelled("col-1: ", content(name).decode()).encode(), context=context(name)
    )
    assert (inner.verdict, inner.counts["xid_lines"]) == (plain.verdict, plain.counts["xid_lines"])
    assert [d.host for d in inner.devices] == [d.host for d in plain.devices]
    behind = read(name, stacked.encode())
    assert (behind.verdict, behind.counts) == (plain.verdict, plain.counts)
