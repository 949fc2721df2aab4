"""What a study's tables say: cards by name, and the tornado around what owning costs over renting."""

from __future__ import annotations

import pytest

from core.messages import msg
from planning import study_changes, study_tables
from tests.planning.study.search import markets
from tests.planning.study.search.markets import A100, H100, HOURS, market, offer


@pytest.fixture(scope="module")
def result():
    snapshot = market(
        offer(), offer(A100, "90"), platforms=[markets.platform()], slugs=(H100, A100)
    )
    return markets.study({**HOURS, "gpu_hours": 160_000, "accelerators": 32}, snapshot)


def test_what_lost_is_called_by_name():
    lost = {
        "accelerator": H100, "provider": "p", "region": "r", "instance": "i", "mode": "spot", "code": "price",
        "reason": msg("Nothing that meets the need costs less").to_json(), "change": None,
    }  # fmt: skip
    (row,) = study_tables.why_not({"exclusions": [lost]})
    assert H100 not in row["what"]
    assert "H100" in row["what"]


def test_moved_prices_call_cards_by_name():
    moved = {
        "accelerator": H100, "mode": "spot", "provider": "p", "region": "r", "instance": "i", "before": "1",
        "after": "2", "currency": "USD", "change": 1.0,
    }  # fmt: skip
    (row,) = study_changes._moved_prices({"prices": [moved]})
    assert H100 not in row["name"]
    assert "H100" in row["name"]


def test_the_tornado_stands_around_owning_less_renting(result):
    found = result["risk"]
    means = {one["name"]: float(one["mean"]) for one in found["choices"]}

    middle = study_tables._middle(found)
    assert middle == means["own"] - means["rent"]
    ends = [float(bar[end]) for bar in found["tornado"] for end in ("low", "high")]
    assert min(ends) < middle < max(ends)
