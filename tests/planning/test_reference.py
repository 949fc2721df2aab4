"""The bridge from the catalogue to the estimators."""

import pytest

from catalog import reference as catalog_reference
from core.errors import InputError
from planning import reference
from planning.estimators.architecture import (
    count_parameters,
    kv_elements_per_token,
    validate,
)


def test_every_card_with_figures_can_be_estimated_on():
    missing = set(catalog_reference.accelerators()) - set(reference.accelerators())
    # rate or bandwidth never published
    assert missing == {
        "biren-br106-bili-106c-106b",
        "alibaba-t-head-ppu",
        "kunlunxin-p800",
    }
    h100 = reference.resolve_accelerator("H100")
    assert h100.hbm_bandwidth == 3.35e12
    assert h100.link_bandwidth == 900e9
    assert h100.pcie_bandwidth == 64e9
    assert h100.generation == "hopper"


def test_a_card_without_figures_is_refused_by_name():
    with pytest.raises(InputError, match="PPU"):
        reference.resolve_accelerator("alibaba-t-head-ppu")
    with pytest.raises(InputError, match="RTX-9999"):
        reference.resolve_accelerator("RTX-9999")


def test_stored_counts_are_the_ones_the_shape_gives():
    """The catalogue shows parameters and cache per token; the estimators compute them. They agree."""
    shapes = reference.architectures()
    assert len(shapes) > 65
    for slug, shape in shapes.items():
        row = catalog_reference.architectures()[slug]
        counted = count_parameters(validate(shape))
        assert row["params_computed_total"] == round(counted.total), slug
        assert row["params_computed_active"] == round(counted.active), slug
        if row["kind"] == "decoder":
            assert row["kv_elements_per_token"] == round(kv_elements_per_token(shape)), slug


def test_computed_counts_are_near_the_published_ones():
    # Gemma 3 publishes its vision tower with the language model.
    far = {"gemma-3-4b", "gemma-3-12b"}
    for slug, row in catalog_reference.architectures().items():
        if row["params_computed_total"] is not None and slug not in far:
            ratio = row["params_computed_total"] / row["params_total"]
            assert ratio == pytest.approx(1, abs=0.02), slug


def test_models_that_are_no_token_transformers_are_refused():
    with pytest.raises(InputError, match="ResNet"):
        reference.resolve_architecture("resnet-50")


def test_cost_defaults_of_catalogue_and_economics_agree():
    """The catalogue shows them and lets an organisation replace them; the economics engine computes with them."""
    from planning.economics.defaults import CURVES, DEFAULTS

    rows = catalog_reference.document("tco_defaults")["tco_defaults"]
    assert len(rows) > 40
    for row in rows:
        if row["key"] in DEFAULTS:
            known = DEFAULTS[row["key"]]
            assert (row["low"], row["value"], row["high"], row["unit"]) == (
                known.low, known.value, known.high, known.unit,
            ), row["key"]  # fmt: skip
        else:
            curve = CURVES[row["key"]]
            assert tuple(row["value"]) == curve.value, row["key"]


@pytest.mark.parametrize(
    ("slug", "shown_mib"),  # Read in public logs of nvidia-smi.
    [
        ("nvidia-h100-sxm5-80gb", 81559),
        ("nvidia-h200-sxm5-141gb", 143771),
        ("nvidia-b200-sxm6-hgx", 183359),
        ("nvidia-l40s", 46068),
        ("nvidia-l20", 46068),
        ("nvidia-geforce-rtx-4090", 24564),
        ("nvidia-rtx-6000-ada", 49140),
    ],
)
def test_the_memory_of_a_card_is_what_its_driver_shows(slug, shown_mib):
    """A label's GB is a GiB; in-line error correction of GDDR6 takes a sixteenth of it."""
    card = reference.accelerator(catalog_reference.accelerators()[slug])
    assert card.visible_bytes == pytest.approx(shown_mib * 2**20, rel=0.001)
