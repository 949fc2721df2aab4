"""Files built to exhaust or deceive a reader are rejected in bounded time and memory."""

import gzip
import io
import json
import tracemalloc
import zipfile

import pytest

from procurement.evidence.read import read_evidence
from tests.procurement.evidence.samples import FOLDER, content

DCGM = "01_dcgmi_diag_v4_r3_all_pass.json"
XML = "15_nvidia_smi_qx_identity_mismatch.xml"


def codes(evidence):
    return {f.code for f in evidence.findings}


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        # A fixed date: these bytes are part of the test's name, which must be the same in every process.
        entry = zipfile.ZipInfo("burn.log", date_time=(2026, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, b"0" * 10_000_000)
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        zipped(),
        gzip.compress(b"Burning for 60 seconds.\n", mtime=0),
        b"%PDF-1.7\n",
        b"\x89PNG\r\n\x1a\n",
    ],
)
def test_what_is_no_text_is_rejected_unopened(data):
    evidence = read_evidence(data)
    assert (evidence.verdict, codes(evidence)) == ("reject", {"not_text"})


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE nvidia_smi_log [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]>',
        '<!DOCTYPE nvidia_smi_log [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd" [<!ENTITY a "b">]>',
    ],
)
def test_entities_are_rejected_a_doctype_is_not(doctype):
    text = content(XML).decode()
    hostile = text.replace('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">', doctype)
    assert hostile != text
    assert read_evidence(text.encode()).verdict == "fail"
    evidence = read_evidence(hostile.encode())
    assert (evidence.verdict, codes(evidence)) == ("reject", {"xml_entities"})


def test_deep_json_is_rejected():
    data = content(DCGM) + b"[" * 100_000
    assert codes(read_evidence(data)) == {"deep_json"}


def test_a_number_of_a_million_digits_is_rejected():
    data = content(DCGM).replace(b'"entity_id" : 0', b'"entity_id" : ' + b"9" * 1_000_000, 1)
    assert codes(read_evidence(data)) == {"huge_number"}


def test_deep_xml_is_rejected():
    text = content(XML).decode().replace("<processes>", "<processes>" + "<a>" * 10_000, 1)
    assert codes(read_evidence(text.encode())) == {"deep_xml"}


def test_keys_that_come_twice_are_no_proof():
    text = (
        content(DCGM)
        .decode()
        .replace('"status" : "Pass"', '"status" : "Fail", "status" : "Pass"', 1)
    )
    evidence = read_evidence(text.encode())
    assert evidence.verdict == "inconclusive"
    assert "damaged_json" in {c.code for c in evidence.cautions}


def test_a_format_read_whole_has_a_limit():
    data = content(XML) + b" x" * (17 << 20)
    assert codes(read_evidence(data)) == {"too_large"}


UNITS = (
    b" ",
    b"\t",
    b"(",
    b"[",
    b"{",
    b"<a",
    b"\x1b[",
    b"\x1b",
    b"\r",
    b"NVRM: Xid (",
    b"|",
    b"- ",
    b"GPU 0: ",
    b"=",
    b"9",
    b"1.",
    b"node1: x\n",
    b"=== a ===\n",
    b'{"MESSAGE": ',
    b'"gpu": 0, ',
    b"# HELP a\n",
    b"0, ",
    b"\xff",
)
HEADS = (
    b"Burning for 259200 seconds.\n",
    b"==============NVSMI LOG==============\n",
    b"| npu-smi 1  Version: 1 |\n",
    b"NVRM: Xid (PCI:0000:29:00): 31, x\n",
    b'{"nvbandwidth": ',
    b"JobID|State|Start\n",
    b"timestamp, index, uuid\n",
)


@pytest.mark.parametrize("unit", UNITS)
def test_endless_repetition_ends(unit):
    """What makes a careless pattern quadratic: script/fuzz_evidence holds each read under five seconds."""
    for head in HEADS:
        evidence = read_evidence(head + unit * (100_000 // len(unit)))
        assert evidence.verdict != "pass"


def test_a_long_log_is_read_in_little_memory(tmp_path):
    record = "\r{:.1f}%  proc'd: 1 (500000 Gflop/s) - 2 (500001 Gflop/s)   errors: 0 - 0   temps: 60 C - 61 C "
    path = tmp_path / "burn.log"
    with path.open("w") as out:
        out.write("Burning for 259200 seconds.\n")
        for n in range(300_000):
            out.write(record.format(n / 3000))
    tracemalloc.start()
    evidence = read_evidence(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 25_000_000
    assert peak < 24_000_000
    assert evidence.format == "gpu_burn"


def test_foreign_files_are_rejected_not_guessed():
    for name in ("types.py", "xid.py"):
        source = FOLDER.parents[2] / "procurement" / "evidence" / name
        assert read_evidence(source).verdict != "pass"
    for data in (
        b"hello\n",
        b"{}",
        b"[1, 2]",
        b"<html></html>",
        b"a,b,c\n1,2,3\n",
        json.dumps({"status": "ok"}).encode(),
    ):
        evidence = read_evidence(data)
        assert (evidence.format, evidence.verdict) == ("unknown", "reject")


def test_an_empty_file_proves_nothing():
    assert read_evidence(b"").verdict == "inconclusive"
