"""Unit economics: what a run, a request, a million tokens, a petaFLOP-hour and a year of life cost.

Training spends price per hour x hours; inference spends a price per request x requests. Money is exact; unit costs
that are smaller than the currency's minor unit stay unrounded and are rounded when they are multiplied out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from core.messages import Message, msg
from core.money import Money
from planning.economics import billing, checks, defaults, exact
from planning.economics.types import HOURS_PER_MONTH, CostLine


def training_cost(price_per_hour: Money, hours: float) -> Money:
    """Cost of a run: price per hour x hours, rounded."""
    checks.price("price_per_hour", price_per_hour)
    checks.non_negative("hours", hours)
    return exact.times(price_per_hour, hours)


def per_call(price_per_hour: Money, calls_per_hour: float) -> Money:
    """Cost of one request at a sustained rate, unrounded."""
    checks.price("price_per_hour", price_per_hour)
    checks.positive("calls_per_hour", calls_per_hour)
    return _divide(price_per_hour, calls_per_hour)


def per_million_tokens(
    price_per_hour: Money, tokens_per_second: float, *, utilisation: float = 1.0
) -> Money:
    """Cost of a million tokens at `tokens_per_second`, kept busy a share `utilisation` of the time. Unrounded."""
    checks.price("price_per_hour", price_per_hour)
    checks.positive("tokens_per_second", tokens_per_second)
    checks.fraction("utilisation", utilisation)
    checks.positive("utilisation", utilisation)
    return _divide(price_per_hour * 1_000_000, tokens_per_second * 3600 * utilisation)


def per_pflop_hour(price_per_hour: Money, peak_flops: float, mfu: float) -> Money:
    """Cost of one effective PFLOP-hour (1e15 FLOP/s for an hour) of one accelerator. Unrounded.

    `peak_flops` is dense [FLOP/s], `mfu` the share of it that a run reaches [1].
    """
    checks.price("price_per_hour", price_per_hour)
    checks.positive("peak_flops", peak_flops)
    checks.fraction("mfu", mfu)
    checks.positive("mfu", mfu)
    return _divide(price_per_hour, peak_flops * mfu / 1e15)


def per_useful_year(
    price: Money, useful_years: float, *, yearly_costs: Money | None = None
) -> Money:
    """Life-cycle cost of one useful (warranted) year: price ÷ years + what each year costs besides. Rounded."""
    checks.price("price", price)
    checks.positive("useful_years", useful_years)
    cost = _divide(price, useful_years)
    if yearly_costs is not None:
        checks.price("yearly_costs", yearly_costs)
        cost = cost + yearly_costs
    return cost.rounded()


# ---- Comparisons ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GenerationComparison:
    """A run on the flagship against the same run on the generation before."""

    flagship_cost: Money
    previous_cost: Money
    speed_ratio: float  # previous over flagship
    price_ratio: float  # previous over flagship, per hour
    saving: float  # share of the flagship's cost; negative: the previous generation is dearer
    notes: tuple[Message, ...]


def compare_generations(
    flagship_price: Money, flagship_hours: float, previous_price: Money, previous_hours: float
) -> GenerationComparison:
    """Cost of one run on two generations, prices per hour of the whole run's cards.

    The older one wins when its price ratio is below its speed ratio; it always finishes later if it is slower.
    """
    checks.same_currency("previous_price", flagship_price, previous_price)
    checks.positive("flagship_price", flagship_price.amount)
    checks.positive("flagship_hours", flagship_hours)
    checks.positive("previous_hours", previous_hours)
    flagship = training_cost(flagship_price, flagship_hours)
    previous = training_cost(previous_price, previous_hours)
    speed = flagship_hours / previous_hours
    price = float(previous_price.amount / flagship_price.amount)
    usual = (
        defaults.known("generation.previous_speed"),
        defaults.known("generation.previous_price"),
    )
    notes = [
        msg(
            "The previous generation takes %(more)s h longer",
            more=round(previous_hours - flagship_hours, 1),
        )
    ]
    if not usual[0].low <= speed <= usual[0].high:
        notes.append(
            msg(
                "The speed ratio %(ratio)s is outside the usual %(low)s to %(high)s",
                ratio=round(speed, 3),
                low=usual[0].low,
                high=usual[0].high,
            )
        )
    if not usual[1].low <= price <= usual[1].high:
        notes.append(
            msg(
                "The price ratio %(ratio)s is outside the usual %(low)s to %(high)s",
                ratio=round(price, 3),
                low=usual[1].low,
                high=usual[1].high,
            )
        )
    saving = 1 - previous_hours * price / flagship_hours
    return GenerationComparison(flagship, previous, speed, price, saving, tuple(notes))


@dataclass(frozen=True, slots=True)
class ServiceOption:
    """One way to serve: cards that each carry some calls a day, at a price a month."""

    name: str
    calls_per_card_day: float
    price_per_card_month: Money
    latency: float  # [s]
    accuracy_loss: float = 0.0  # share


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """What one option takes, without and with headroom."""

    option: ServiceOption
    cards: int
    monthly: Money
    cards_with_headroom: int
    monthly_with_headroom: Money
    per_call: Money  # with headroom, unrounded
    refused: Message | None


def service_costs(
    options: tuple[ServiceOption, ...],
    *,
    calls_per_day: float,
    latency_limit: float,
    accuracy_loss_limit: float,
    headroom: float | None = None,
) -> tuple[ServiceCost, ...]:
    """Cards and monthly cost of each option, cheapest admitted first, then the refused with their reason.

    Headroom is over demand: ceil(calls x (1 + headroom) / calls per card). Both counts are given, because a plan
    without headroom is cheaper on paper and wrong in service.
    """
    checks.positive("calls_per_day", calls_per_day)
    checks.positive("latency_limit", latency_limit)
    checks.fraction("accuracy_loss_limit", accuracy_loss_limit)
    extra = defaults.value("headroom") if headroom is None else headroom
    checks.non_negative("headroom", extra)
    costs = [
        _service_cost(o, calls_per_day, latency_limit, accuracy_loss_limit, extra) for o in options
    ]
    checks.same_currency("price_per_card_month", *(cost.monthly for cost in costs))
    return tuple(
        sorted(costs, key=lambda c: (c.refused is not None, c.monthly_with_headroom.amount))
    )


def _service_cost(
    option: ServiceOption, calls: float, latency_limit: float, loss_limit: float, headroom: float
) -> ServiceCost:
    checks.positive("calls_per_card_day", option.calls_per_card_day)
    checks.price("price_per_card_month", option.price_per_card_month)
    bare = math.ceil(round(calls / option.calls_per_card_day, 9))
    safe = math.ceil(round(calls * (1 + headroom) / option.calls_per_card_day, 9))
    refused = None
    if not option.latency < latency_limit:
        refused = msg(
            "%(latency)s ms is not below the limit of %(limit)s ms",
            latency=round(option.latency * 1000),
            limit=round(latency_limit * 1000),
        )
    elif option.accuracy_loss > loss_limit:
        refused = msg(
            "It loses %(loss)s %% of accuracy; at most %(limit)s %% is allowed",
            loss=round(option.accuracy_loss * 100, 2),
            limit=round(loss_limit * 100, 2),
        )
    monthly = (option.price_per_card_month * safe).rounded()
    calls_a_month = calls * HOURS_PER_MONTH / 24
    return ServiceCost(
        option,
        bare,
        (option.price_per_card_month * bare).rounded(),
        safe,
        monthly,
        _divide(monthly, calls_a_month),
        refused,
    )


class ServingTier(StrEnum):
    """Three tiers of serving; most services belong in the middle one."""

    FAST = "fast"
    BALANCED = "balanced"
    ECONOMY = "economy"


def serving_tier(latency: float) -> ServingTier:
    """The cheapest tier that answers within `latency` [s]: economy takes up to 5 s, balanced 0.5 s, fast 0.2 s."""
    checks.positive("latency", latency)
    if latency >= defaults.value("latency.economy"):
        return ServingTier.ECONOMY
    return (
        ServingTier.BALANCED if latency >= defaults.value("latency.balanced") else ServingTier.FAST
    )


def tier_price_range(tier: ServingTier) -> tuple[float, float]:
    """Usual cost of a call in `tier`, low and high. [CNY]"""
    usual = defaults.known(f"tier.{tier.value}.cny_per_call")
    return usual.low, usual.high


@dataclass(frozen=True, slots=True)
class Change:
    """A cost before and after, and the part saved."""

    before: Money
    after: Money
    saving: float


def change(before: Money, after: Money) -> Change:
    """The saving of `after` over `before`; negative when it is dearer."""
    checks.same_currency("after", before, after)
    checks.positive("before", before.amount)
    return Change(before, after, 1 - float(after.amount / before.amount))


def after_quantisation(cost_per_call: Money, latency: float, speedup: float) -> tuple[Money, float]:
    """Cost of a call and latency [s] once the same card answers `speedup` times as fast. Cost unrounded."""
    checks.price("cost_per_call", cost_per_call)
    checks.positive("latency", latency)
    if not speedup >= 1:
        raise checks.refuse("speedup", speedup, ">= 1")
    return _divide(cost_per_call, speedup), latency / speedup


# ---- The cloud's lines besides compute ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DataPrices:
    """Prices of storage and movement; None means not stated, and a need for it is refused."""

    storage_gb_month: Money | None = None
    snapshot_gb_month: Money | None = None
    egress_gb: Money | None = None
    egress_tiers: tuple[
        tuple[Decimal | None, Decimal], ...
    ] = ()  # used instead of egress_gb when given
    egress_free_gb: Decimal = Decimal(0)
    read_gb: Money | None = None  # object store to compute: transfer and requests
    cache_gb_month: Money | None = None


@dataclass(frozen=True, slots=True)
class DataUse:
    """What a workload stores and moves. [GB] = 1e9 B"""

    stored_gb: float = 0.0
    months: float = 1.0
    snapshots_gb: float = 0.0
    egress_gb: float = 0.0
    dataset_gb: float = 0.0
    epochs: float = 0.0  # how often the data set is read
    cached: bool = False  # read once, then from a local cache


def data_lines(use: DataUse, prices: DataPrices, currency: str) -> tuple[CostLine, ...]:
    """Storage, snapshots, egress, data reads and cache as cost lines.

    Without a cache the whole data set crosses the object store's line at every epoch; with one it does so once, and
    the cache is paid for the months.

    Raises
    ------
    InputError
        If something is used that has no price: missing is not free.
    """
    checks.non_negative("months", use.months)
    reads = use.dataset_gb * (min(use.epochs, 1.0) if use.cached else use.epochs)
    needs: Mapping[str, tuple[Message, float, Money | None, str]] = {
        "storage": (
            msg("Storage"), use.stored_gb * use.months, prices.storage_gb_month, "GB-month",
        ),
        "snapshots": (
            msg("Snapshots"), use.snapshots_gb * use.months, prices.snapshot_gb_month, "GB-month",
        ),
        "egress": (msg("Egress"), use.egress_gb, prices.egress_gb, "GB"),
        "data_read": (msg("Data reads"), reads, prices.read_gb, "GB"),
        "cache": (
            msg("Local cache"),
            use.dataset_gb * use.months if use.cached else 0.0,
            prices.cache_gb_month,
            "GB-month",
        ),
    }  # fmt: skip
    lines: list[CostLine] = []
    for name, (label, quantity, price, unit) in needs.items():
        checks.non_negative(name, quantity)
        if quantity == 0:
            continue
        if name == "egress" and prices.egress_tiers:
            lines.append(_tiered_egress(label, quantity, prices, currency))
            continue
        if price is None:
            raise checks.refuse(f"prices.{name}", "missing", "a price, because it is used")
        checks.price(f"prices.{name}", price)
        checks.same_currency(f"prices.{name}", price, Money(Decimal(0), currency))
        lines.append(exact.line(name, label, price, quantity, unit))
    return tuple(lines)


def _tiered_egress(label: Message, quantity: float, prices: DataPrices, currency: str) -> CostLine:
    amount = billing.tiered_amount(
        exact.to_decimal(quantity), prices.egress_tiers, free=prices.egress_free_gb
    )
    return CostLine("egress", label, Money(amount, currency).rounded(), quantity, "GB")


def _divide(money: Money, divisor: float) -> Money:
    return Money(money.amount / exact.to_decimal(divisor), money.currency)
