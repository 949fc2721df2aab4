"""How figures are written."""

import pytest

from core.templatetags.ui import quantity


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.35e12, "B/s", "3.35 TB/s"),
        (85.9e9, "B", "85.9 GB"),
        (600, "tokens", "600 tokens"),
        (86_400, "requests", "86,400 requests"),
        (1.5e12, "tokens", "1.50 T tokens"),
        (24_000_000, "CNY", "24,000,000.00 CNY"),
        (1500, "JPY", "1,500 JPY"),
        (0, "B", "0 B"),
        (2.5, "", "2.50"),
        (None, "B", "–"),
    ],
)
def test_a_quantity_reads_as_a_person_would_say_it(value, unit, text):
    assert quantity(value, unit) == text
