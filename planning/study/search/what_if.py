"""A study's question with other numbers, over the accelerators that its plans use: no task, a fraction of a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.errors import require_between
from planning.economics import defaults
from planning.study.model import KnownModel
from planning.study.request import StudyRequest, parse_request, request_json
from planning.study.search.choice import World, choose
from planning.study.search.costs import bought, join, rented, reused, taxed
from planning.study.search.data_costs import data_costs
from planning.study.search.leasing import leased
from planning.study.search.market import market
from planning.study.search.mixes import mixed
from planning.study.search.plans import bill, tax_json
from planning.study.search.report import comparison
from planning.study.search.run import Setting, ways_of
from planning.study.search.snapshot import SNAPSHOT, Snapshot, snapshot_from_json
from planning.study.workloads import ONLINE, Kind

SMALLEST, LARGEST = 0.1, 10.0  # factors


@dataclass(frozen=True, slots=True)
class Changes:
    """What is turned. Factors are of the study's own value; None: as it was."""

    amount: float = 1.0  # tokens, samples, items, GPU hours, or requests a day
    duration_days: int | None = None
    growth_per_month: float | None = None  # of an online service
    price: float = 1.0  # of everything that is rented
    utilisation: float | None = None  # of bought cards beside this need

    def __post_init__(self) -> None:
        for name in ("amount", "price"):
            require_between(name, getattr(self, name), SMALLEST, LARGEST)
        if self.duration_days is not None:
            require_between("duration_days", self.duration_days, 1, 3660)
        if self.growth_per_month is not None:
            require_between("growth_per_month", self.growth_per_month, -0.5, 1.0)
        if self.utilisation is not None:
            require_between("utilisation", self.utilisation, 0.01, 1.0)


AMOUNT = {
    Kind.ONLINE_INFERENCE: "requests_per_day",
    Kind.BATCH_INFERENCE: "items",
    Kind.ONLINE_SAMPLES: "requests_per_day",
    Kind.BATCH_SAMPLES: "items",
    Kind.GPU_HOURS: "gpu_hours",
    Kind.SAMPLES: "samples",
}


def amount_field(kind: Kind) -> str:
    """The field of the workload that says how much."""
    return AMOUNT.get(kind, "tokens")


def part_of(content: Mapping[str, Any], accelerators: frozenset[str]) -> Snapshot:
    """The snapshot stored as `content`, with what concerns `accelerators` only."""
    servers = {row["slug"] for row in content["platforms"] if row["accelerator"] in accelerators}
    return snapshot_from_json(
        {
            **content,
            "schema": content.get("schema", SNAPSHOT),
            "accelerators": [row for row in content["accelerators"] if row["slug"] in accelerators],
            "offers": [row for row in content["offers"] if row[3] in accelerators],
            "platforms": [row for row in content["platforms"] if row["accelerator"] in accelerators],
            "leases": [row for row in content.get("leases", ()) if row["platform"] in servers],
            "stock": [row for row in content["stock"] if row[0] in accelerators],
            "unpriced": [],
        }
    )  # fmt: skip


def changed(request: StudyRequest, changes: Changes) -> StudyRequest:
    """The request with the changes in. Raises InputError where a value leaves its range."""
    data = request_json(request)
    name = amount_field(request.kind)
    data[name] = request.workload[name] * changes.amount
    if changes.duration_days is not None:
        data["duration_days"] = changes.duration_days
    if changes.growth_per_month is not None and request.kind in ONLINE:
        data["growth_per_month"] = changes.growth_per_month
    return parse_request(data)


def what_if(
    request: StudyRequest,
    known: KnownModel | None,
    snapshot: Snapshot,
    setting: Setting,
    changes: Changes,
) -> dict[str, Any]:
    """The cheapest and the fastest plan, and reuse, rent and buy side by side, as JSON values."""
    with defaults.corrected(snapshot.costs):
        return _what_if(request, known, snapshot, setting, changes)


def _what_if(
    request: StudyRequest,
    known: KnownModel | None,
    snapshot: Snapshot,
    setting: Setting,
    changes: Changes,
) -> dict[str, Any]:
    asked = changed(request, changes)
    accelerators = snapshot.accelerators
    sold = market(asked, snapshot, accelerators, currency=setting.currency, country=setting.country)
    priced = frozenset(accelerator.slug for accelerator in accelerators)
    found = ways_of(asked, known, accelerators, priced)
    data, _notes = data_costs(asked, known, snapshot, setting.currency, sold.offers)
    hired = rented(asked, found.ways, accelerators, sold, data)
    blends, mixes = mixed(
        asked, found.ways, hired, sold, snapshot, setting.currency, price_factor=changes.price
    )
    hired = replace(hired, cost=hired.cost * changes.price, amount=hired.amount * changes.price)
    use = setting.owned_utilisation if changes.utilisation is None else changes.utilisation
    owned, _unpriced = bought(
        found.ways, accelerators, snapshot, setting.currency, utilisation=use, tax=setting.tax
    )
    on_lease, _unpriced = leased(
        found.ways, accelerators, snapshot, setting.currency, utilisation=use, tax=setting.tax
    )
    candidates = join(
        [
            taxed(hired, setting.tax, setting.currency),
            taxed(blends, setting.tax, setting.currency),
            owned,
            on_lease,
            reused(found.ways, accelerators, snapshot, setting.currency),
        ]
    )
    world = World(
        asked, snapshot, accelerators, sold, found.ways, candidates, setting.currency, setting.country, None,
        price_factor=changes.price, utilisation=use, mixes=mixes, data=data, tax=setting.tax,
        pooled=setting.pooled,
    )  # fmt: skip
    choice = choose(world)
    return {
        "currency": setting.currency,
        "candidates": found.evaluated + len(candidates),
        "met": int(choice.verdicts.meets.sum()),
        "cheapest": None if choice.cheapest is None else _line(world, choice.cheapest),
        "fastest": None if choice.fastest is None else _line(world, choice.fastest),
        "comparison": comparison(world, choice, found.constants_version),
    }


def _line(world: World, i: int) -> dict[str, Any]:
    c, paid = world.candidates, bill(world, i)
    return {
        "accelerator": world.accelerator(i).name,
        "cards": int(world.ways.cards[c.way[i]]),
        "mode": world.mode(i),
        "cost": str(paid.cost.amount),
        "amount": str(paid.amount.amount),
        "currency": world.currency,
        "tax": tax_json(world, paid),
        "seconds": float(c.seconds[i]),
    }
