"""The shipped facts: complete, dated, and right where articles go wrong."""

from datetime import date

import pytest

from catalog import reference

DENSE = [
    ("nvidia-a100-sxm4-80gb", "bf16", 312.0),  # not the sparse figure: do not halve
    ("nvidia-h100-sxm5-80gb", "bf16", 989.4),
    ("nvidia-h100-sxm5-80gb", "tf32", 494.7),  # what "halving" H100 mistakes for BF16
    ("nvidia-h100-pcie-80gb", "bf16", 756.0),
    ("nvidia-l40s", "fp16", 362.05),
    ("nvidia-l40", "fp16", 181.0),
    ("nvidia-geforce-rtx-4090", "fp16", 165.2),  # 82.6 is the vector rate
    ("nvidia-a10g-aws", "fp16", 70.0),  # not an A10
    ("nvidia-a10", "fp16", 125.0),
    ("amd-instinct-mi300x-oam", "fp16", 1307.4),  # 2615 is FP8 dense
]


@pytest.mark.parametrize(("slug", "dtype", "tflops"), DENSE)
def test_rates_are_dense(slug, dtype, tflops):
    assert reference.accelerators()[slug]["peak_flops"][dtype] == pytest.approx(tflops * 1e12)


def test_marketing_figure_stands_beside_the_dense_one():
    a100 = reference.accelerators()["nvidia-a100-sxm4-80gb"]
    assert a100["marketing_flops"]["bf16"] == pytest.approx(624e12)
    l40s = reference.accelerators()["nvidia-l40s"]
    assert l40s["marketing_flops"]["fp16"] == pytest.approx(733e12)  # as printed, not twice 362.05
    for row in reference.accelerators().values():
        for dtype, rate in row["marketing_flops"].items():
            assert rate > row["peak_flops"][dtype], (row["slug"], dtype)


def test_china_cards_lost_their_link_not_their_memory():
    cards = reference.accelerators()
    for cut, full in (
        ("nvidia-h800-sxm5-80gb", "nvidia-h100-sxm5-80gb"),
        ("nvidia-a800-sxm4-80gb", "nvidia-a100-sxm4-80gb"),
    ):
        assert cards[cut]["hbm_bandwidth"] == cards[full]["hbm_bandwidth"]
        assert cards[cut]["link_bandwidth"] == 400e9 < cards[full]["link_bandwidth"]


def test_a_board_is_seen_as_its_devices():
    k80 = reference.accelerators()["nvidia-k80-2-x-gk210-board"]
    assert k80["hbm_bytes"] == 12e9
    assert k80["devices_per_board"] == 2
    assert reference.accelerators()["nvidia-a16-4-x-ga107-board"]["hbm_bytes"] == 16e9


@pytest.mark.parametrize(
    ("document", "rows"),
    [
        ("accelerators", "accelerators"),
        ("models", "models"),
        ("cloud_offers", "offers"),
        ("server_platforms", "server_platforms"),
        ("tco_defaults", "tco_defaults"),
        ("exchange_rates", "exchange_rates"),
        ("street_prices", "street_prices"),
    ],
)
def test_every_row_says_where_it_comes_from(document, rows):
    for row in reference.document(document)[rows]:
        assert row["source"].strip(), row
        assert date.fromisoformat(row["as_of"]) <= date(2026, 11, 30), row
        assert row["confidence"] in {"read", "recalled", "derived", "chosen"}, row


def test_aliases_point_to_one_card_each():
    seen = {}
    for row in reference.accelerators().values():
        for alias in row["aliases"]:
            assert seen.setdefault(reference.fold(alias), row["slug"]) == row["slug"], alias


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("H100", "nvidia-h100-sxm5-80gb"),
        ("H100-80GB", "nvidia-h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "nvidia-h100-pcie-80gb"),
        ("A100-SXM", "nvidia-a100-sxm4-80gb"),
        ("A100-80GB", "nvidia-a100-sxm4-80gb"),
        ("A100-40GB", "nvidia-a100-sxm4-40gb"),
        ("A100-PCIe", "nvidia-a100-pcie-80gb"),
        ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"),
        ("RTX4090", "nvidia-geforce-rtx-4090"),
        ("RTX 6000 Ada", "nvidia-rtx-6000-ada"),
        ("RTX6000PRO", "nvidia-rtx-pro-6000-blackwell-server-edition"),
        ("L40", "nvidia-l40"),
        ("Gaudi2", "intel-gaudi-2-oam-hl-225h"),
        ("MI300X", "amd-instinct-mi300x-oam"),
        ("GH200-144", "nvidia-gh200-144gb-hbm3e"),
        ("RTX-9999", None),
    ],
)
def test_names_people_use_are_understood(name, slug):
    assert reference.accelerator_slug(name) == slug


def test_names_of_models_are_understood():
    assert reference.architecture_slug("meta-llama/Llama-3.1-8B") == "llama-3-1-8b"
    assert reference.architecture_slug("no-such-model") is None
