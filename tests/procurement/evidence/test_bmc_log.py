"""Event logs of management controllers: what each event weighs, and what a log without a fault shows."""

import json

import pytest

from core.messages import msg
from procurement.evidence.policy import EvidenceContext, default_context
from procurement.evidence.read import read_evidence
from procurement.evidence.report import Report
from procurement.evidence.types import Severity, Verdict

WINDOW = {"window_start": "2026-03-01T00:00:00+00:00", "window_end": "2026-03-04T00:00:00+00:00"}
BEFORE = "02/27/2026 | 22:10:03 | Event Logging Disabled SEL | Log area reset/cleared | Asserted"
AFTER = "03/06/2026 | 09:00:00 | OS Boot #0x22 | boot completed | Asserted"


def read(text, window=True):
    order = {"order_context": WINDOW if window else {}}
    return read_evidence(text.encode(), context=EvidenceContext.from_json(order))


def rows(*events):
    return "".join(f"{n:4x} | {event}\n" for n, event in enumerate((BEFORE, *events, AFTER), 1))


def at(event, day="03/02/2026"):
    return f"{day} | 02:17:45 | {event}"


def labelled(label, text):
    return "".join(f"{label}{line}\n" for line in text.splitlines())


def codes(evidence):
    return {finding.code for finding in evidence.findings}


@pytest.mark.parametrize(
    ("event", "code", "verdict"),
    [
        ("Power Supply PS2 Status | Power Supply AC lost | Asserted", "power_supply", "fail"),
        ("Power Supply #0x51 | Failure detected | Asserted", "power_supply", "fail"),
        ("Power Supply PS1 | Presence detected | Deasserted", "unit_gone", "fail"),
        ("Power Unit Pwr Unit Redund | Redundancy Lost | Asserted", "power_supply", "fail"),
        ("Power Unit Pwr Unit Status | Power off/down | Asserted", "power_lost", "fail"),
        ("Fan FAN3 | Lower Critical going low  | Asserted | Reading 0 < Threshold 500 RPM", "fan", "fail"),
        ("Temperature CPU1 Temp | Upper Critical going high | Asserted", "thermal", "fail"),
        ("Processor P1 Therm Trip | Thermal Trip | Asserted", "thermal", "fail"),
        ("Memory #0x53 | Uncorrectable ECC (@DIMM7A) | Asserted", "ecc_uncorrectable", "fail"),
        ("Memory #0x53 | Correctable ECC (@DIMM7A) | Asserted", "ecc_correctable", "warn"),
        ("Critical Interrupt PCIe | Bus Fatal Error | Asserted", "bus", "fail"),
        ("Processor CATERR | IERR | Asserted", "processor", "fail"),
        ("Voltage P12V | Lower Critical going low | Asserted", "voltage", "fail"),
        ("Temperature Inlet | Upper Non-critical going high | Asserted", "threshold_minor", "warn"),
        ("Watchdog2 #0xca | Hard reset | Asserted", "watchdog", "fail"),
        ("Unknown #0x0c | whatever a vendor means | Asserted", "unknown_event", "warn"),
        ("Physical Security #0xaa | General Chassis intrusion | Asserted", "intrusion", "warn"),
    ],
)  # fmt: skip
def test_each_event_weighs_what_it_means(event, code, verdict):
    evidence = read(rows(at(event)))
    assert (evidence.format, evidence.verdict) == ("bmc_sel_text", verdict)
    assert codes(evidence) == {f"bmc_{code}"}
    assert evidence.findings[0].where == "line 2"
    comma = rows(at(event)).replace(" | ", ",")
    assert read(comma).verdict == verdict


def test_a_log_over_the_whole_time_without_a_fault_passes_and_no_other():
    good = rows(at("System Firmware Progress #0x05 | System boot initiated | Asserted"))
    assert read(good).verdict == "pass"
    assert read(good, window=False).verdict == "warn"
    assert read(good.replace("03/06/2026", "03/04/2026")).verdict == "warn"  # its zone is not known
    assert read("SEL has no entries\n").verdict == "warn"
    lines = good.splitlines(keepends=True)
    assert read(lines[0] + lines[2]).verdict == "warn"  # an entry is missing
    assert read(lines[1] + lines[0] + lines[2]).verdict == "inconclusive"
    assert read(good + "Get SEL Entry 1a0 command failed: Unknown\n").verdict == "inconclusive"
    assert read(good[:-5]).verdict == "inconclusive"  # "Ass"


def test_events_of_the_factory_are_told_and_decide_nothing():
    old = at("Power Supply PS2 | Power Supply AC lost | Asserted", day="02/20/2026")
    text = rows().replace(BEFORE, old)
    evidence = read(text)
    assert evidence.verdict == "pass"
    assert evidence.counts["before_window"] == 1
    assert read(text, window=False).verdict == "fail"
    unset = rows().replace(
        BEFORE, "Pre-Init  |0000000012| Power Supply #0x51 | Failure detected | Asserted"
    )
    assert read(unset).verdict == "fail"  # nobody knows when


def test_a_log_that_was_cleared_or_full_within_the_time_does_not_cover_it():
    cleared = at("Event Logging Disabled SEL | Log area reset/cleared | Asserted")
    assert read(rows(cleared)).verdict == "warn"
    full = at("Event Logging Disabled SEL | Log full | Asserted")
    assert read(rows(full)).verdict == "inconclusive"


def test_ipmi_sel_of_freeipmi_and_each_host_of_a_shell():
    text = (
        "ID  | Date        | Time     | Name        | Type         | Event\n"
        "1   | Mar-02-2026 | 02:17:45 | PS2 Status  | Power Supply | Power Supply input lost (AC/DC)\n"
    )
    assert read(text).verdict == "fail"
    boot = at("OS Boot #0x22 | boot completed | Asserted")
    failed = at("Fan F1 | Lower Critical going low | Asserted")
    both = labelled("node-1: ", rows(boot, failed, boot)) + labelled("node-2: ", rows(boot, boot))
    evidence = read(both)
    assert evidence.verdict == "fail"
    assert {finding.host for finding in evidence.findings} == {"node-1"}


def entry(severity, message, created="2026-03-02T02:17:45Z", **more):
    return {"@odata.type": "#LogEntry.v1_9_0.LogEntry", "EntryType": "SEL", "Severity": severity,
            "Message": message, "Created": created, **more}  # fmt: skip


def collection(*entries, count=None, **more):
    every = [entry("OK", "System boot completed", "2026-02-27T00:00:00Z"), *entries,
             entry("OK", "User admin logged in", "2026-03-05T00:00:00Z")]  # fmt: skip
    return json.dumps(
        {"@odata.type": "#LogEntryCollection.LogEntryCollection", "Members": every,
         "Members@odata.count": len(every) if count is None else count, **more}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (collection(), "pass"),
        (collection(entry("Critical", "PSU 2 input lost")), "fail"),
        (collection(entry("Critical", "某部件故障")), "fail"),
        (collection(entry("Warning", "something of the maker")), "warn"),
        (collection(entry("OK", "Power supply redundancy lost")), "warn"),  # OK is an input, no verdict
        (collection(entry("Critical", "PSU 2 lost", EntryCode="Deassert")), "warn"),
        (collection(count=9), "inconclusive"),
        (collection(**{"Members@odata.nextLink": "/redfish/v1/x?$skip=50"}), "inconclusive"),
        (json.dumps({"@odata.type": "#LogEntryCollection.LogEntryCollection", "Members@odata.count": 1,
                     "Members": [{"@odata.id": "/redfish/v1/x/1"}]}), "inconclusive"),
        (collection()[:-40], "inconclusive"),
        (json.dumps([entry("Critical", "Fan 3 failed")]), "fail"),
    ],
)  # fmt: skip
def test_entries_of_redfish(text, verdict):
    evidence = read(text)
    assert (evidence.format, evidence.verdict) == ("bmc_log_redfish", verdict)


def test_no_number_of_remarks_crowds_out_a_failure():
    many = [at(f"Memory #0x53 | Correctable ECC (@DIMM{n}) | Asserted") for n in range(300)]
    failed = at("Fan FAN3 | Lower Critical going low | Asserted")
    assert read(rows(*many, failed)).verdict == "fail"
    log = Report("x", default_context()).device(1)
    for n in range(300):
        log.note(Verdict.WARN, f"remark{n}", msg("A card does not answer: %(text)s", text=str(n)))
    log.note(Verdict.FAIL, "broken", msg("A card does not answer: %(text)s", text="x"))
    assert log.freeze().verdict == Verdict.FAIL
    assert Severity.BLOCKING in {finding.severity for finding in read(rows(*many, failed)).findings}
