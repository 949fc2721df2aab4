"""The study of one request over one snapshot: candidates, evaluation, prices, filters, rank, and what it all says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np

from core.errors import DomainError
from core.messages import Message, msg
from core.money import Money
from planning.economics import defaults
from planning.estimators.types import Accelerator
from planning.study.answer_json import estimate_json
from planning.study.estimates import estimate_on
from planning.study.model import KnownModel
from planning.study.request import StudyRequest, request_json
from planning.study.search import report
from planning.study.search.choice import Choice, World, choose
from planning.study.search.costs import bought, join, rented, reused, taxed
from planning.study.search.data_costs import data_costs
from planning.study.search.hours_ways import hours_ways
from planning.study.search.inference_ways import inference_ways
from planning.study.search.leasing import leased
from planning.study.search.market import allowed_accelerators, market
from planning.study.search.mixes import mixed
from planning.study.search.plans import plan_json
from planning.study.search.pooled import OthersDemand
from planning.study.search.purchase_tax import PurchaseTax
from planning.study.search.regret import Regrets, regrets
from planning.study.search.sample_ways import as_served, sample_ways
from planning.study.search.snapshot import Snapshot
from planning.study.search.training_ways import training_ways
from planning.study.search.ways import Exclusion, Found, Progress
from planning.study.search.why_not import losers
from planning.study.workloads import ONLINE, SAMPLE_INFERENCE, TOKEN_INFERENCE, TRAINING, Kind

SCHEMA = "headroom/study-1"
DETAILED = 8  # plans that carry their whole estimate

STAGES = {
    "candidates": msg("Collecting accelerators and offers"),
    "evaluate": msg("Evaluating layouts, precisions and batches"),
    "price": msg("Pricing every way to pay"),
    "rank": msg("Filtering and ranking"),
    "risk": msg("Weighing risks"),
    "explain": msg("Explaining what lost"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a study needs beside request and snapshot."""

    currency: str
    seed: int = 0
    country: str = "CN"  # where bought servers would stand, and where data stays
    owned_utilisation: float | None = None  # of the cards owned already
    budgets: Mapping[str, Decimal] = field(
        default_factory=dict
    )  # what the team has left, by kind of spend
    stage: str | None = None  # of the organisation, where the request tells none
    tax: PurchaseTax | None = None  # on what is bought or rented; None: not set
    pooled: Mapping[str, OthersDemand] = field(
        default_factory=dict
    )  # open requests of others, by accelerator


def silent(percent: int, stage: Message) -> None:
    """Report to nobody."""


def run_study(
    request: StudyRequest,
    known: KnownModel | None,
    snapshot: Snapshot,
    setting: Setting,
    progress: Progress = silent,
    *,
    snapshot_hash: str | None = None,
    first: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """The result as JSON values (docs/study-schema.md). `progress` is called at each stage and may raise to cancel;
    `first` is given the plans as soon as they are ranked, before their risks and reasons are known.

    Raises
    ------
    InputError
        If the request itself is out of range. What cannot be priced or does not fit is not an error: it is named.
    """
    with defaults.corrected(snapshot.costs):
        return _run(request, known, snapshot, setting, progress, snapshot_hash, first)


def _run(
    request: StudyRequest,
    known: KnownModel | None,
    snapshot: Snapshot,
    setting: Setting,
    progress: Progress,
    snapshot_hash: str | None,
    first: Callable[[dict[str, Any]], None] | None,
) -> dict[str, Any]:
    progress(5, STAGES["candidates"])
    accelerators, refused = allowed_accelerators(request, snapshot)
    sold = market(
        request, snapshot, accelerators, currency=setting.currency, country=setting.country
    )
    progress(15, STAGES["evaluate"])
    found = ways_of(request, known, accelerators, _priced(snapshot))
    progress(50, STAGES["price"])
    owned, not_priced = bought(
        found.ways, accelerators, snapshot, setting.currency, utilisation=setting.owned_utilisation,
        tax=setting.tax,
    )  # fmt: skip
    on_lease, no_rate = leased(
        found.ways, accelerators, snapshot, setting.currency, utilisation=setting.owned_utilisation,
        tax=setting.tax,
    )  # fmt: skip
    data, data_notes = data_costs(request, known, snapshot, setting.currency, sold.offers)
    hired = rented(request, found.ways, accelerators, sold, data)
    blends, mixes = mixed(request, found.ways, hired, sold, snapshot, setting.currency)
    candidates = join(
        [
            taxed(hired, setting.tax, setting.currency),
            taxed(blends, setting.tax, setting.currency),
            owned,
            on_lease,
            reused(found.ways, accelerators, snapshot, setting.currency),
        ]
    )
    budget, budget_note = _budget(request, snapshot, setting.currency)
    world = World(
        request, snapshot, accelerators, sold, found.ways, candidates, setting.currency, setting.country, budget,
        utilisation=setting.owned_utilisation, mixes=mixes, data=data,
        team_budgets={
            kind: Money(left, setting.currency) for kind, left in setting.budgets.items()
        },
        tax=setting.tax, pooled=setting.pooled,
    )  # fmt: skip
    progress(65, STAGES["rank"])
    choice = choose(world)
    if first is not None:
        first(report.first_plans(world, choice))
    progress(75, STAGES["risk"])
    pool = choice.ranked if choice.ranked.size else report.nearest(world, choice)
    spread = regrets(world, pool, seed=setting.seed) if pool.size else None
    progress(85, STAGES["explain"])
    excluded = [*refused, *found.refused, *sold.refused, *losers(world, choice)]
    excluded += report.without_price(world, found)
    return _result(
        world, found, choice, spread, pool, excluded, setting, known,
        unpriced=[*snapshot.unpriced, *sold.unpriced, *not_priced, *no_rate],
        notes=[*found.notes, *budget_note, *data_notes], snapshot_hash=snapshot_hash,
    )  # fmt: skip


def _priced(snapshot: Snapshot) -> frozenset[str]:
    """Accelerators that someone sells, or that are owned."""
    return frozenset(
        [offer.accelerator for offer in snapshot.offers]
        + [platform.server.accelerator for platform in snapshot.platforms]
        + [stock.accelerator for stock in snapshot.stock]
    )


def ways_of(
    request: StudyRequest,
    known: KnownModel | None,
    accelerators: tuple[Accelerator, ...],
    priced: frozenset[str],
) -> Found:
    """The physical ways of a request, by its kind."""
    if known is None or request.kind == Kind.GPU_HOURS:
        return hours_ways(request, accelerators)
    if request.kind in TRAINING:
        return training_ways(request, known, accelerators, priced)
    if request.kind in SAMPLE_INFERENCE:
        return sample_ways(request, known, accelerators)
    return inference_ways(request, known, accelerators)


def _budget(
    request: StudyRequest, snapshot: Snapshot, currency: str
) -> tuple[Money | None, list[Message]]:
    """The budget in the study's currency; without a rate it is left out, and said."""
    amount = request.constraints.budget
    if amount is None:
        return None, []
    told = Money(Decimal(amount), request.constraints.currency or currency)
    try:
        return snapshot.table.unit_price(told, currency).rounded(), []
    except DomainError as error:
        return None, [error.message]


def _result(
    world: World,
    found: Found,
    choice: Choice,
    spread: Regrets | None,
    pool: np.ndarray[tuple[int], np.dtype[np.int64]],
    excluded: list[Exclusion],
    setting: Setting,
    known: KnownModel | None,
    *,
    unpriced: list[Any],
    notes: list[Message],
    snapshot_hash: str | None,
) -> dict[str, Any]:
    snapshot, request = world.snapshot, world.request
    roles = _roles(world, choice, spread, pool)
    detailed = _detailed(roles, choice, pool)
    plans: list[dict[str, Any]] = []
    if spread is not None:
        for row, i in enumerate(pool):
            detail = _detail(world, int(i), known) if int(i) in detailed else None
            plans.append(
                plan_json(world, int(i), spread=spread, row=row, roles=roles.get(int(i), []), detail=detail,
                          doubts=report.doubts(world, choice, spread, row, int(i)))
            )  # fmt: skip
    met = plans if choice.ranked.size else []
    risk = report.buy_or_rent(world, choice, seed=setting.seed)
    keys = {int(i): plan["key"] for i, plan in zip(pool, plans, strict=True)}
    return {
        "schema": SCHEMA,
        "request": request_json(request),
        "axis": "latency" if request.kind in ONLINE else "time",
        "currency": world.currency,
        "budget": None if world.budget is None else str(world.budget.amount),
        "limit_seconds": report.limit_of(world),
        "catalogue": {
            "on": snapshot.on.isoformat(),
            "as_of": snapshot.as_of.isoformat() if snapshot.as_of else None,
            "origin": snapshot.origin,
            "hash": snapshot_hash or snapshot.hash(),
        },
        "rates": [
            {"base": r.base, "quote": r.quote, "rate": str(r.rate), "as_of": r.as_of.isoformat(), "source": r.source}
            for r in snapshot.rates
            if world.currency in (r.base, r.quote)
        ],
        "constants": {"estimator": found.constants_version, "economics": defaults.stamp()},
        "purchase_tax": None if setting.tax is None else setting.tax.to_json(),
        "costs": [_cost_json(row) for row in snapshot.costs],
        "seed": setting.seed,
        "counts": {
            "accelerators": len(world.accelerators),
            "offers": len(world.market.offers) + len(world.market.refused),
            "evaluated": found.evaluated,
            "ways": len(found.ways),
            "priced": len(world.candidates),
            "candidates": found.evaluated + len(world.candidates),
            "met": int(choice.verdicts.meets.sum()),
        },
        "plans": met,
        "nearest": [] if met else plans,
        "frontier": [
            {
                "key": keys[int(i)],
                "cost": next(p["cost"] for p in plans if p["key"] == keys[int(i)]),
                "seconds": float(world.candidates.seconds[i]),
                "accuracy_loss": float(world.ways.accuracy_loss[world.candidates.way[i]]),
            }
            for i in choice.frontier
        ],
        "recommended": report.recommended(world, choice, spread, pool, keys),
        "comparison": report.comparison(world, choice, found.constants_version),
        "balance": report.balance(plans),
        "software_first": report.software_first(world, plans),
        "advice": report.advice(world, met, risk, setting.stage),
        "risk": risk,
        "exclusions": [exclusion_json(one) for one in excluded],
        "unpriced": [{"subject": one.subject, "reason": one.reason.to_json()} for one in unpriced],
        "notes": [note.to_json() for note in (*report.none_safe(world, choice, spread, pool), *notes)],
    }  # fmt: skip


def _cost_json(row: defaults.Default | defaults.Curve) -> dict[str, Any]:
    """A corrected cost default beside what the product ships."""
    series = isinstance(row, defaults.Curve)
    shipped = (defaults.CURVES if series else defaults.DEFAULTS)[row.name].value
    return {
        "name": row.name, "unit": row.unit, "source": row.source, "as_of": row.as_of,
        "value": list(row.value) if isinstance(row.value, tuple) else row.value,
        "shipped": list(shipped) if isinstance(shipped, tuple) else shipped,
    }  # fmt: skip


def _roles(world: World, choice: Choice, spread: Regrets | None, pool: Any) -> dict[int, list[str]]:
    roles: dict[int, list[str]] = {}
    if choice.cheapest is None or choice.fastest is None or spread is None:
        return roles
    named = [("cheapest", choice.cheapest), ("fastest", choice.fastest)]
    row = report.safest_row(world, choice, spread, pool)
    if row is not None:
        named.append(("safest", int(pool[row])))
    for role, i in named:
        roles.setdefault(i, []).append(role)
    return roles


def _detailed(roles: dict[int, list[str]], choice: Choice, pool: Any) -> set[int]:
    """Which plans carry their whole estimate: the recommended ones, then the frontier, then the cheapest."""
    order = dict.fromkeys([*roles, *(int(i) for i in choice.frontier), *(int(i) for i in pool)])
    return set(list(order)[:DETAILED])


def _detail(world: World, i: int, known: KnownModel | None) -> dict[str, Any] | None:
    """The estimate behind candidate `i`, as the `estimate` command gives it. None for what it cannot do yet."""
    way = int(world.candidates.way[i])
    accelerator = world.accelerator(i)
    cards = int(world.ways.cards[way])
    if known is None or world.request.kind not in TOKEN_INFERENCE:
        asked = replace(world.request, accelerators=(accelerator.slug,), count=cards)
        if asked.kind in SAMPLE_INFERENCE:
            asked = as_served(asked, world.ways.precision[way], world.ways.layout[way])
        return estimate_json(estimate_on(asked, known, accelerator), Message.to_json)
    return report.inference_detail(world, i, known)


def exclusion_json(one: Exclusion) -> dict[str, Any]:
    """An exclusion as stored."""
    return {
        "subject": one.subject,
        "accelerator": one.accelerator,
        "provider": one.provider,
        "region": one.region,
        "instance": one.instance,
        "mode": one.mode,
        "code": one.code,
        "reason": one.reason.to_json(),
        "change": None if one.change is None else one.change.to_json(),
    }
