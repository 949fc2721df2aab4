"""Formats of evidence by the names that people use."""

from procurement.evidence.readers import READERS
from procurement.format_names import NAMES, format_name


def test_every_format_that_is_read_has_a_name():
    assert set(READERS) <= set(NAMES)
    assert format_name("nvidia_smi_q_xml") == "nvidia-smi -q -x"
    assert format_name("") == ""
