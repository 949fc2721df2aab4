import pytest

from procurement.evidence.isolated import read_isolated
from tests.procurement.evidence.samples import FOLDER, expected, read

NAME = "15_nvidia_smi_qx_identity_mismatch.xml"


def test_the_child_finds_what_the_reader_finds():
    order = {"order_context": expected(NAME)["order_context"]}
    assert read_isolated(FOLDER / NAME, context=order) == read(NAME)


def test_a_child_over_its_limits_is_a_rejection_not_a_crash():
    evidence = read_isolated(FOLDER / NAME, memory_bytes=20_000_000)
    assert evidence.verdict == "reject"
    assert [f.code for f in evidence.findings] == ["reader_limits"]


def test_a_missing_file_is_the_callers_mistake(tmp_path):
    with pytest.raises(OSError, match=r"none\.log"):
        read_isolated(tmp_path / "none.log")
