"""How figures are written."""

import pytest
from django.utils import translation

from core.templatetags.ui import quantity


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.35e12, "B/s", "3.35 TB/s"),
        (85.9e9, "B", "85.9 GB"),
        (600, "tokens", "600 tokens"),
        (86_400, "requests", "86,400 requests"),
        (1.5e12, "tokens", "1.5 T tokens"),
        (5e9, "tokens", "5 B tokens"),
        (300e6, "tokens", "300 M tokens"),
        (24_000_000, "CNY", "24,000,000.00 CNY"),
        (1500, "JPY", "1,500 JPY"),
        (0, "B", "0 B"),
        (2.5, "", "2.50"),
        (None, "B", "–"),
    ],
)
def test_a_quantity_reads_as_a_person_would_say_it(value, unit, text):
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (200_000, "requests", "200,000 次请求"),
        (5e9, "tokens", "50 亿 token"),
        (1.5e12, "tokens", "1.5 万亿 token"),
        (2e6, "requests", "200 万 次请求"),
        (8, "pcs", "8 件"),
        (3.35e12, "B/s", "3.35 TB/s"),
    ],
)
def test_chinese_counts_in_ten_thousands(value, unit, text):
    with translation.override("zh-hans"):
        assert quantity(value, unit) == text
