"""What a study says beside its plans: who is recommended and why, buy against rent against reuse, balance, advice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from core.errors import DomainError
from core.messages import Message, msg
from core.money import Money
from planning.economics import defaults, exact
from planning.economics.advice import PlanFacts, Situation, Stage, advise, five_rules
from planning.economics.break_even import break_even_utilisation, curves
from planning.economics.risk import Range, Reservation, RiskInputs, simulate
from planning.economics.types import PaymentMode
from planning.estimators.fleet import plan_fleet
from planning.estimators.inference import estimate_inference
from planning.estimators.inference_workload import InferenceLayout, InferenceWorkload
from planning.study.answer_json import estimate_json
from planning.study.estimates import AcceleratorEstimate
from planning.study.inference_size import at_its_load
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.search.backing import (
    card_hour,
    least_own,
    measured_use,
    own_use,
    rent_of,
    told_pooled_use,
    told_use,
    work_hours,
)
from planning.study.search.choice import Choice, World, sure_to_hold, timing
from planning.study.search.costs import YEARS, case_of
from planning.study.search.inference_ways import peak_rate
from planning.study.search.plans import bill, key_of
from planning.study.search.regret import NEED, Regrets, may_miss
from planning.study.search.ways import Exclusion, Found, Ints
from planning.study.search.why_not import money
from planning.study.workloads import INFERENCE, ONLINE, TRAINING, Kind

FIRST = 6  # plans told before a study is complete
MAY_MISS = msg("May miss what is asked for: it is met in the middle of its band and not at the P90")
NEAREST = 6  # misses shown when nothing meets the need
IDLE = 0.35  # of a resource: below it is said to be idle
STAGES = {
    "student": Stage.STUDENT,
    "startup": Stage.START_UP,
    "midsize": Stage.MID_SIZE,
    "large": Stage.LARGE,
}
INPUTS = {
    "demand_growth": msg("Growth of demand"),
    "utilisation": msg("Utilisation"),
    "price_decline": msg("Fall of prices"),
    "failure": msg("Failures"),
    "tariff_drift": msg("Electricity tariff"),
    "fx_drift": msg("Exchange rate"),
}
IDLE_WORDS = {
    "compute": msg("Compute idle: %(share)s %% in use"),
    "bandwidth": msg("Memory bandwidth idle: %(share)s %% in use"),
}


def limit_of(world: World) -> float | None:
    """What time (or latency) is held against; None: nothing. [s]"""
    limits = world.ways.limit[np.isfinite(world.ways.limit)]
    return float(limits[0]) if limits.size else None


def nearest(world: World, choice: Choice) -> Ints:
    """Where nothing meets the need: the candidates that miss by least, one of each accelerator and payment."""
    c, verdicts = world.candidates, choice.verdicts
    able = np.flatnonzero(verdicts.ends & verdicts.exact)
    if not able.size:
        return able.astype(np.int64)
    limit = world.ways.limit[c.way[able]]
    late = np.where(np.isfinite(limit), np.maximum(c.seconds[able] / limit, 1.0), 1.0)
    dear = np.ones(able.size)
    if world.budget is not None and world.budget.amount:
        dear = np.maximum(c.amount[able] / float(world.budget.amount), 1.0)
    barred = ~(
        verdicts.ordered
        & verdicts.exportable
        & verdicts.resident
        & verdicts.housed
        & verdicts.sized
    )[able]
    order = able[np.lexsort((c.cost[able], np.log(late) + np.log(dear), barred))]
    seen: set[tuple[str, str]] = set()
    kept = []
    for i in order:
        kind = (world.accelerator(int(i)).slug, world.mode(int(i)))
        if kind not in seen:
            seen.add(kind)
            kept.append(int(i))
        if len(kept) == NEAREST:
            break
    return np.array(kept, dtype=np.int64)


def without_price(world: World, found: Found) -> list[Exclusion]:
    """Accelerators that could do the work and that nobody sells in the catalogue."""
    able = set(found.ways.accelerator.tolist())
    priced = set(found.ways.accelerator[world.candidates.way].tolist())
    barred = {one.accelerator for one in world.market.refused}
    return [
        Exclusion(
            "accelerator",
            world.accelerators[index].slug,
            msg("It would do the work, but the catalogue has no price for it"),
            msg("Enter an offer, a server price or a quotation"),
            "unpriced",
        )
        for index in sorted(able - priced)
        if world.accelerators[index].slug not in barred
    ]


def first_plans(world: World, choice: Choice) -> dict[str, Any]:
    """The cheapest ranked plans in short, for who waits: what a study shows before it has weighed and explained."""
    c = world.candidates
    return {
        "axis": "latency" if world.request.kind in ONLINE else "time",
        "candidates": len(c),
        "met": int(choice.verdicts.meets.sum()),
        "plans": [
            {
                "accelerator": world.accelerator(i).name,
                "cards": int(world.ways.cards[c.way[i]]),
                "mode": world.mode(i),
                "cost": str(money(float(c.cost[i]), world.currency).amount),
                "currency": world.currency,
                "seconds": float(c.seconds[i]),
            }
            for i in map(int, choice.ranked[:FIRST])
        ],
    }


# ---- Recommended -------------------------------------------------------------------------------------------------


def recommended(
    world: World, choice: Choice, spread: Regrets | None, pool: Ints, keys: dict[int, str]
) -> list[dict[str, Any]]:
    """The cheapest that meets the need, the fastest within budget, the one that is regretted least."""
    if choice.cheapest is None or choice.fastest is None or spread is None:
        return []
    c = world.candidates
    cheapest, fastest, row = (
        choice.cheapest,
        choice.fastest,
        safest_row(world, choice, spread, pool),
    )
    more = float(c.cost[fastest] / c.cost[cheapest]) - 1.0 if c.cost[cheapest] else 0.0
    gain = 1.0 - float(c.seconds[fastest] / c.seconds[cheapest])
    nothing_faster = (
        msg("Nothing within the budget is noticeably faster")
        if world.budget is not None
        else msg(
            "Nothing at up to twice the cheapest cost is noticeably faster; no budget was told"
        )
    )
    why: list[tuple[str, int, Message]] = [
        ("cheapest", cheapest, msg("Nothing that meets the need costs less")),
        (
            "fastest",
            fastest,
            nothing_faster
            if fastest == cheapest
            else msg(
                "%(gain)s %% less time than the cheapest for %(times)s times the money",
                gain=round(100 * gain),
                times=round(1 + more, 1),
            )
            if more >= 1
            else msg(
                "%(gain)s %% less time than the cheapest for %(more)s %% more money",
                gain=round(100 * gain),
                more=round(100 * more),
            ),
        ),
    ]
    if row is not None:
        why.append(
            (
                "safest",
                int(pool[row]),
                msg(
                    "In nine of ten scenarios it costs at most %(regret)s more than the best plan would have",
                    regret=money(float(spread.p90[row]), world.currency).about(),
                ),
            )
        )
    return [{"role": role, "key": keys[i], "why": text.to_json()} for role, i, text in why]


def safest_row(world: World, choice: Choice, spread: Regrets, pool: Ints) -> int | None:
    """Of the plans that may be headlined and hold what is asked for at the P90 the one whose regret is smallest in
    nine scenarios of ten; None where none does."""
    backed = np.array([choice.backings.headlined(int(i)) for i in pool])
    held = np.array([not may_miss(world, int(i), spread, row) for row, i in enumerate(pool)])
    eligible = np.flatnonzero(held & backed if backed.any() else held)
    if not eligible.size:
        return None
    order = np.lexsort((spread.mean[eligible], spread.p90[eligible]))
    return int(eligible[order[0]])


def none_safe(world: World, choice: Choice, spread: Regrets | None, pool: Ints) -> list[Message]:
    """Where nothing is safe: that, and what comes nearest."""
    if (
        spread is None
        or not choice.ranked.size
        or safest_row(world, choice, spread, pool) is not None
    ):
        return []
    limits = world.ways.limit[world.candidates.way[pool]]
    held = np.array([not may_miss(world, int(i), spread, row) for row, i in enumerate(pool)])
    over = spread.seconds[:, 2] / limits
    row = (
        int(np.argmin(spread.cost[:, 1] + np.where(held, 0.0, np.inf)))
        if held.any()
        else int(np.argmin(over))
    )
    i = int(pool[row])
    values: dict[str, Any] = {
        "cards": int(world.ways.cards[world.candidates.way[i]]),
        "name": world.accelerator(i).name,
        "share": round(100 * float(over[row])),
    }
    if held.any():
        return [
            msg(
                "No plan is the safest: none that may be recommended holds what is asked for at the P90. %(cards)s × "
                "%(name)s would hold it (%(share)s %% of the limit), with the doubts told there",
                **values,
            )
        ]
    return [
        msg(
            "No plan is the safest: none holds what is asked for at the P90. %(cards)s × %(name)s comes nearest, at "
            "%(share)s %% of the limit",
            **values,
        )
    ]


def doubts(world: World, choice: Choice, spread: Regrets, row: int, i: int) -> list[Message]:
    """What keeps the plan in that row from being headlined."""
    backing = choice.backings.doubt(i)
    found = [] if backing is None else [backing]
    if may_miss(world, i, spread, row):
        found.append(MAY_MISS)
    return found


# ---- Buy, rent or reuse ------------------------------------------------------------------------------------------


def comparison(world: World, choice: Choice, constants: str) -> list[dict[str, Any]]:
    """The best of each side by side, whether it meets the need or not, with the versions of its inputs."""
    c = world.candidates
    sides = (
        ("reuse", c.stock >= 0, msg("Use what is owned and free")),
        ("rent", (c.offer >= 0) | (c.mix >= 0), msg("Rent at today's price")),
        (
            "buy",
            (c.platform >= 0) & (c.lease < 0),
            msg("Buy, whole cost over %(years)s years", years=YEARS),
        ),
    )
    rows = []
    for name, mask, title in sides:
        row: dict[str, Any] = {"side": name, "title": title.to_json(), "key": None}
        best = _best(world, choice, np.flatnonzero(mask))
        if best is None:
            row["missing"] = _missing(world, name).to_json()
            rows.append(row)
            continue
        paid = bill(world, best)
        row |= {
            "key": key_of(world, best),
            "accelerator": world.accelerator(best).name,
            "cards": int(world.ways.cards[c.way[best]]),
            "mode": world.mode(best),
            "cost": str(paid.cost.amount),
            "amount": str(paid.amount.amount),
            "currency": world.currency,
            "seconds": float(c.seconds[best]),
            "meets": bool(choice.verdicts.meets[best]),
            "meets_p90": bool(choice.verdicts.meets[best] and sure_to_hold(world)[best]),
            "notes": [note.to_json() for note in paid.notes],
            "inputs": _inputs(world, best, constants),
        }
        if name == "buy":
            doubt = choice.backings.doubt(best)
            row["notes"] += [] if doubt is None else [doubt.to_json()]
            row["notes"].append(timing(world.accelerator(best), world.snapshot.on).to_json())
        rows.append(row)
    return rows


def _best(world: World, choice: Choice, among: Ints) -> int | None:
    among = among[np.isfinite(world.candidates.cost[among])]
    if not among.size:
        return None
    c, verdicts = world.candidates, choice.verdicts
    late, oversized = ~verdicts.in_time, ~verdicts.sized
    order = np.lexsort((c.cost[among], late[among], oversized[among], ~verdicts.meets[among]))
    return int(among[order[0]])


def _missing(world: World, side: str) -> Message:
    if side == "rent" and world.request.constraints.data_residence == "organisation":
        return msg("Data may not leave the organisation: public cloud is out, whatever it costs")
    return {
        "reuse": msg("No owned accelerator that could do this is free"),
        "rent": msg("No offer of the catalogue can be used for this"),
        "buy": msg("No server of the catalogue with a price can be used for this"),
    }[side]


def _inputs(world: World, i: int, constants: str) -> list[dict[str, str]]:
    """From which day and source each input is."""
    c, snapshot = world.candidates, world.snapshot
    rows = []
    price_currency = world.currency
    if c.mix[i] >= 0:
        mix = world.mixes[int(c.mix[i])]
        price_currency = mix.base.price.currency
        seen = dict.fromkeys(
            (offer.as_of.isoformat(), offer.source)
            for offer in (mix.base, mix.peak, mix.spare)
            if offer is not None
        )
        rows += [{"name": "price", "version": day, "source": source} for day, source in seen]
    elif c.offer[i] >= 0:
        offer = world.market.offers[int(c.offer[i])]
        price_currency = offer.price.currency
        rows.append({"name": "price", "version": offer.as_of.isoformat(), "source": offer.source})
    elif c.platform[i] >= 0:
        platform = snapshot.platforms[int(c.platform[i])]
        price_currency = platform.server.price.currency
        rows.append(
            {"name": "price", "version": platform.as_of.isoformat(), "source": platform.source}
        )
        rows.append({"name": "economics", "version": defaults.stamp(), "source": ""})
    else:
        rows.append({"name": "stock", "version": snapshot.on.isoformat(), "source": ""})
        rows.append({"name": "economics", "version": defaults.stamp(), "source": ""})
    if price_currency != world.currency:
        rate = snapshot.table.find(price_currency, world.currency)
        rows.append(
            {
                "name": "rate",
                "version": rate.as_of.isoformat(),
                "source": f"1 {rate.base} = {rate.rate.normalize():f} {rate.quote} · {rate.source}",
            }
        )
    if constants:
        rows.append({"name": "estimator", "version": constants, "source": ""})
    return rows


# ---- Balance and software ----------------------------------------------------------------------------------------


def balance(plans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each plan with an estimate how far compute, memory and bandwidth are used, and what sleeps."""
    rows = []
    for plan in plans:
        detail = plan["estimate"]
        shares = None if detail is None else detail.get("saturation")
        if not shares:
            continue
        idle = []
        for name, share in shares.items():
            if share >= IDLE:
                continue
            if name == "memory":
                capacity = float(detail["memory"]["capacity_bytes"])
                idle.append(
                    msg(
                        "%(idle)s of %(have)s GB asleep on each accelerator",
                        idle=round((1 - share) * capacity / 1e9),
                        have=round(capacity / 1e9),
                    )
                )
            else:
                idle.append(msg(IDLE_WORDS[name].template, share=round(share * 100)))
        rows.append({"key": plan["key"], **shares, "idle": [text.to_json() for text in idle]})
    return rows


def software_first(world: World, plans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What to change in software before buying: warnings of the estimates, and the rules that are broken."""
    request = world.request
    shown = [p for p in plans if p["roles"]] or plans[:1]
    found: dict[str, dict[str, Any]] = {}
    for plan in shown:
        for text in (plan["estimate"] or {}).get("warnings", []):
            if not text["template"].startswith(
                "Data sheets"
            ):  # about the card's papers: told with the estimate
                found.setdefault(str(text), text)
    if request.kind == Kind.GPU_HOURS:  # nothing is known of the work that the rules ask about
        return list(found.values())
    training = request.kind in TRAINING
    quantised = None
    if request.kind in INFERENCE:
        quantised = any(plan["accuracy_loss"] > 0 for plan in shown)
    facts = PlanFacts(
        training=training,
        sized_by_model=True if training else None,
        latency_checked=request.constraints.latency_seconds is not None
        if request.kind in ONLINE
        else None,
        quantised=quantised,
        accuracy_loss_allowed=bool(request.constraints.accuracy_loss_limit),
        spot=any(plan["mode"] == PaymentMode.SPOT for plan in shown),
        checkpointable=request.constraints.interruptible
        and all(plan["kind"] != "stock" for plan in shown),
    )
    for rule in five_rules(facts):
        found.setdefault(str(rule.to_json()), rule.to_json())
    return list(found.values())


# ---- Advice and risk ---------------------------------------------------------------------------------------------


def advice(
    world: World,
    plans: list[dict[str, Any]],
    risk: dict[str, Any] | None,
    stage_of_organisation: str | None,
) -> list[dict[str, Any]]:
    """Advice by the stage of the asker; silent on what is not known, and without a stage on all of it."""
    stage = STAGES.get(world.request.constraints.stage or stage_of_organisation or "")
    if stage is None:
        return []
    by_mode = {plan["mode"]: float(plan["cost"]) for plan in reversed(plans)}
    spot, on_demand = by_mode.get("spot"), by_mode.get("on_demand")
    saving = None if not spot or not on_demand else max(1 - spot / on_demand, 0.0)
    cheapest = plans[0] if plans else None
    hours = None if cheapest is None else float(cheapest["hours"])
    owned = sum(stock.cards for stock in world.snapshot.stock)
    taken = owned - sum(stock.free for stock in world.snapshot.stock)
    measured = world.utilisation
    planned = None if hours is None else min(hours / (YEARS * 8760), 1.0)
    least, lasting = None, True
    if risk is not None and "missing" not in risk:
        planned, lasting = risk["planned_utilisation"], risk["own_utilisation"] >= least_own()
        found = risk["break_even_utilisation"]
        least = 1.0 if found is None else found
    situation = Situation(
        stage=stage,
        owned_cards=owned,
        utilisation=measured if measured is not None or not owned else taken / owned,
        cards_needed=None if cheapest is None else int(cheapest["cards"]),
        planned_utilisation=planned,
        demand_swing=_swing(world.request),
        yearly_budget=world.budget or world.team_budgets.get("cloud"),
        may_leave=world.request.constraints.data_residence != "organisation",
        spot_saving=saving,
        funnel_saving=_funnel_saving(plans),
        break_even_utilisation=least,
        need_hours=hours,
        lasting=lasting,
    )
    return [text.to_json() for text in advise(situation)]


def _swing(request: StudyRequest) -> float | None:
    """How much a service's load changes within a year; None: not told. Share"""
    growth = request.workload.get("growth_per_month")
    return None if growth is None else float(abs((1.0 + float(growth)) ** 12 - 1.0))


def _funnel_saving(plans: list[dict[str, Any]]) -> float | None:
    """What the cheapest mix saves against the better pure mode; None without a mix. Share"""
    mix = next((plan["funnel"] for plan in plans if plan["funnel"]), None)
    if mix is None:
        return None
    savings = [row["saving"] for row in mix["pure"] if row["saving"] is not None]
    return max(min(savings), 0.0) if savings else None


def buy_or_rent(world: World, choice: Choice, *, seed: int) -> dict[str, Any] | None:
    """Owning against renting the same cards over years, under uncertainty. None where one of both is not priced."""
    c = world.candidates
    bought = _best(world, choice, np.flatnonzero((c.platform >= 0) & (c.lease < 0)))
    if bought is None or world.market.table is None:
        return None
    platform = world.snapshot.platforms[int(c.platform[bought])]
    case = case_of(platform, int(c.instances[bought]), world.tax)
    rental = choice.backings.rental
    rent = rent_of(world, bought, rental, case)
    if rent is None:
        return None
    use, used = told_use(world, bought), int(world.ways.cards[c.way[bought]])
    reserved = _reserved_hour(world, bought, rental, case.currency)
    try:
        found = simulate(
            case,
            rent,
            seed=seed,
            inputs=RiskInputs(utilisation=_around(use)),
            reservation=None if reserved is None else Reservation(reserved, used * 0.5),
        )
        needed = break_even_utilisation(case, rent, YEARS * 12)
        course = curves(case, rent, utilisations=(0.3, 0.6, 0.9))
    except DomainError as error:
        return {"missing": error.message.to_json()}

    def shown(amount: Money) -> str:
        return str(world.snapshot.table.unit_price(amount, world.currency).rounded().amount)

    return {
        "accelerator": world.accelerator(bought).name,
        "cards": case.accelerators,
        "used_cards": used,
        "rental": _rental(world, rental),
        "own_utilisation": own_use(world, bought),
        "years": YEARS,
        "rent_per_card_hour": shown(rent.per_card_hour),
        "own_cheaper": found.own_cheaper,
        "planned_utilisation": use,
        "measured_utilisation": measured_use(world, bought),
        "pooled_utilisation": told_pooled_use(world, bought),
        "break_even_utilisation": needed,
        "break_even_months": [
            {"utilisation": share, "month": month} for share, month in course.month_by_utilisation
        ],
        "flexibility": shown(found.flexibility),
        "choices": [
            {
                "name": one.name,
                "label": one.label.to_json(),
                "mean": shown(one.mean),
                "p10": shown(one.p10),
                "p90": shown(one.p90),
                "regret": shown(one.mean_regret),
                "best_share": one.best_share,
            }
            for one in found.choices
        ],
        "tornado": [
            {"name": bar.name, "label": INPUTS[bar.name].to_json(), "low": shown(bar.at_p10), "high": shown(bar.at_p90)}
            for bar in found.tornado
        ],
        "paths": found.paths,
    }  # fmt: skip


def _reserved_hour(world: World, i: int, rental: int | None, currency: str) -> Money | None:
    """A year's reservation for the work of one card-hour of purchase `i`, on the cards of the rental. None: not sold"""
    if rental is None:
        return card_hour(world, world.accelerator(i).slug, PaymentMode.RESERVED_1Y, currency)
    price = card_hour(world, world.accelerator(rental).slug, PaymentMode.RESERVED_1Y, currency)
    if price is None:
        return None
    more = exact.to_decimal(work_hours(world, rental) / work_hours(world, i))
    return Money(price.amount * more, currency)


def _rental(world: World, i: int | None) -> dict[str, Any] | None:
    """The rental that owning is held against."""
    if i is None:
        return None
    return {
        "accelerator": world.accelerator(i).name,
        "cards": int(world.ways.cards[world.candidates.way[i]]),
        "mode": world.mode(i),
    }


def _around(use: float) -> Range:
    """The known use of the servers, as far off as a need usually is, and at most all of it. Share"""
    low, middle, high = NEED.p10 * use, NEED.p50 * use, NEED.p90 * use
    return Range(low, middle, min(high, middle + (1.0 - middle) / 1.5))


def inference_detail(world: World, i: int, known: KnownModel) -> dict[str, Any]:
    """The estimate of the fleet of candidate `i`, at the concurrency that the search took."""
    request, way = world.request, int(world.candidates.way[i])
    layout = world.ways.layout[way]
    accelerator = world.accelerator(i)
    workload = InferenceWorkload(
        input_tokens=float(request.workload["input_tokens"]),
        output_tokens=float(request.workload["output_tokens"]),
        weights_dtype=world.ways.precision[way],
        kv_dtype=request.options.get("kv_precision"),
        engine=str(request.options.get("engine", "vllm")),
        concurrency=float(layout["concurrency"]),
    )
    replica = InferenceLayout(
        tensor_parallel=int(layout["tensor_parallel"]),
        pipeline_parallel=int(layout["pipeline_parallel"]),
        attention_data_parallel=int(layout.get("attention_data_parallel", 1)),
        expert_parallel=int(layout.get("expert_parallel", 1)),
    )
    found = estimate_inference(
        workload,
        accelerator,
        known.architecture,
        accelerators=int(world.ways.cards[way]),
        layout=replica,
    )
    if request.kind == Kind.ONLINE_INFERENCE and found.figures:
        peak = float(request.workload["peak_factor"])
        load = replace(workload, request_rate=peak_rate(request) / peak, peak_factor=peak)
        fleet = plan_fleet(load, accelerator, known.architecture, layout=replica)
        answers = fleet.answers_with(int(found.layout["replicas"]))
        found = replace(at_its_load(found, answers, fleet), fleet=answers)
    each = int(layout["accelerators_per_replica"])
    return estimate_json(
        AcceleratorEstimate(accelerator, found, found.accelerators // each, each, found.saturation),
        Message.to_json,
    )
