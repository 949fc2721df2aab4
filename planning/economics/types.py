"""What the economics engine takes and gives: frozen dataclasses. Prices are `Money`, physics is `float`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum

import numpy as np

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money, total
from planning.economics import checks
from planning.economics.checks import Floats

HOURS_PER_YEAR = 8760
HOURS_PER_MONTH = 730  # 8760 / 12: the month that clouds and this product bill by
SECONDS_PER_HOUR = 3600
SECONDS_PER_MONTH = HOURS_PER_MONTH * SECONDS_PER_HOUR


class PaymentMode(StrEnum):
    """How capacity is paid for."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED_1Y = "reserved_1y"
    RESERVED_3Y = "reserved_3y"
    SUBSCRIPTION = "subscription"
    OWNED = "owned"
    COLOCATED = "colocated"
    LEASED = "leased"


MODES: tuple[PaymentMode, ...] = tuple(PaymentMode)
PUBLIC_CLOUD_MODES = frozenset(
    {
        PaymentMode.ON_DEMAND,
        PaymentMode.SPOT,
        PaymentMode.RESERVED_1Y,
        PaymentMode.RESERVED_3Y,
        PaymentMode.SUBSCRIPTION,
    }
)
COMMITMENT_MONTHS: Mapping[PaymentMode, int] = {
    PaymentMode.RESERVED_1Y: 12,
    PaymentMode.RESERVED_3Y: 36,
    PaymentMode.SUBSCRIPTION: 1,
}


class BillingUnit(StrEnum):
    """The grain to which use is rounded up."""

    SECOND = "second"
    HOUR = "hour"
    MONTH = "month"

    @property
    def seconds(self) -> int:
        """Length of one unit. [s]"""
        return {"second": 1, "hour": SECONDS_PER_HOUR, "month": SECONDS_PER_MONTH}[self.value]


@dataclass(frozen=True, slots=True)
class Offer:
    """One price of one instance: who, where, what, how it is paid, and from which day the price is.

    `price` is per instance-hour before tax, whatever the billing unit (a subscription of 730 a month is 1 an hour).
    """

    provider: str
    region: str
    instance: str
    accelerator: str  # slug
    accelerators: int  # in one instance
    mode: PaymentMode
    price: Money
    as_of: date
    source: str = ""
    confidence: str = "read"
    billing_unit: BillingUnit = BillingUnit.SECOND
    minimum_seconds: int = 0  # billed at each start, at least
    commitment_months: int = 0
    upfront: Money | None = None  # per instance and term
    tax_rate: Decimal = Decimal(0)
    reclaim_per_month: float | None = None  # share of spot instances reclaimed in a month
    notice_seconds: float = 0.0  # between the notice of a reclaim and the reclaim

    def __post_init__(self) -> None:
        checks.price("price", self.price)
        if self.upfront is not None:
            checks.price("upfront", self.upfront)
            checks.same_currency("upfront", self.price, self.upfront)
        if self.accelerators < 1:
            raise checks.refuse("accelerators", self.accelerators, ">= 1")
        checks.non_negative("minimum_seconds", self.minimum_seconds)
        checks.non_negative("commitment_months", self.commitment_months)
        checks.non_negative("tax_rate", self.tax_rate)
        checks.non_negative("notice_seconds", self.notice_seconds)
        if self.reclaim_per_month is not None:
            checks.below_one("reclaim_per_month", self.reclaim_per_month)

    @property
    def place(self) -> tuple[str, str, str]:
        """Provider, region, instance: offers of one place differ only in how they are paid."""
        return (self.provider, self.region, self.instance)

    @property
    def public_cloud(self) -> bool:
        """True if the data leaves the organisation's own walls."""
        return self.mode in PUBLIC_CLOUD_MODES

    def priced(self, price: Money, upfront: Money | None) -> Offer:
        """The same offer at another price (another currency, another term)."""
        return replace(self, price=price, upfront=upfront)


@dataclass(frozen=True, slots=True)
class CostLine:
    """One named line of a cost, already rounded to the currency's minor unit."""

    name: str
    label: Message
    amount: Money
    quantity: float | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        if self.amount != self.amount.rounded():
            raise ValueError(f"cost line {self.name} is not rounded: {self.amount.amount}")


@dataclass(frozen=True, slots=True)
class CostSheet:
    """Lines and their total. The total is the sum of the rounded lines, so what is shown adds up."""

    lines: tuple[CostLine, ...]
    currency: str

    @property
    def total(self) -> Money:
        """Sum of all lines."""
        return total((line.amount for line in self.lines), self.currency)

    @property
    def before_tax(self) -> Money:
        """Sum of the lines that are not tax."""
        return total((x.amount for x in self.lines if x.name != "tax"), self.currency)

    def amount(self, name: str) -> Money:
        """Sum of the lines called `name`; zero when there are none."""
        return total((x.amount for x in self.lines if x.name == name), self.currency)

    def share(self, name: str) -> float:
        """Part of the total that the lines called `name` make up. [1]"""
        whole = self.total.amount
        return float(self.amount(name).amount / whole) if whole else 0.0

    def __add__(self, other: CostSheet) -> CostSheet:
        checks.same_currency("currency", self.total, other.total)
        return CostSheet(self.lines + other.lines, self.currency)


def sheet(lines: Iterable[CostLine], currency: str) -> CostSheet:
    """A cost sheet of `lines`, without those that are zero."""
    return CostSheet(tuple(line for line in lines if line.amount.amount != 0), currency)


@dataclass(frozen=True, slots=True)
class PricePeriod:
    """A price valid from `start` up to, not including, `end` (None: until further notice)."""

    start: date
    end: date | None
    price: Money


@dataclass(frozen=True, slots=True)
class Burst:
    """Extra cards for `hours` from hour `start`, again each `every` hours (None: once)."""

    start: int
    hours: int
    cards: float
    every: int | None = None


FLAT_DAY = (1.0,) * 24
FLAT_WEEK = (1.0,) * 7
OFFICE_DAY = (
    0.15, 0.1, 0.1, 0.1, 0.1, 0.15, 0.25, 0.45, 0.75, 0.95, 1.0, 1.0,
    0.85, 0.95, 1.0, 1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.35, 0.25,
)  # fmt: skip
OFFICE_WEEK = (1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.45)


@dataclass(frozen=True, slots=True)
class DemandProfile:
    """Cards wanted hour by hour: a base, a swing with the day and the week, bursts; hour 0 is Monday 0:00.

    ``base + swing * day[hour] * week[weekday] + bursts``. A share `interruptible` of whatever is above the base may
    be stopped and resumed (training with checkpoints, data jobs); the base is not.
    """

    base: float
    swing: float = 0.0
    day: tuple[float, ...] = FLAT_DAY
    week: tuple[float, ...] = FLAT_WEEK
    bursts: tuple[Burst, ...] = ()
    interruptible: float = 0.0
    growth_per_year: float = 0.0

    def __post_init__(self) -> None:
        checks.non_negative("base", self.base)
        checks.non_negative("swing", self.swing)
        checks.fraction("interruptible", self.interruptible)
        if not -1 < self.growth_per_year < 100:
            raise checks.refuse("growth_per_year", self.growth_per_year, "-1 < x < 100")
        for field, shape, length in (("day", self.day, 24), ("week", self.week, 7)):
            checks.series(field, shape, upper=1.0)
            if len(shape) != length:
                raise checks.refuse(field, len(shape), f"{length} values")
        for burst in self.bursts:
            checks.non_negative("bursts.cards", burst.cards)
            if (
                burst.start < 0
                or burst.hours < 1
                or (burst.every is not None and burst.every < burst.hours)
            ):
                raise InputError(
                    "bursts",
                    msg(
                        "A burst needs a start of at least 0, a length of at least 1 h and no overlap"
                    ),
                    value=(burst.start, burst.hours, burst.every),
                )

    def hourly(self, hours: int = HOURS_PER_YEAR) -> Floats:
        """Cards wanted in each hour. [1], shape (hours,)"""
        checks.positive("hours", hours)
        hour = np.arange(hours)
        shape = np.asarray(self.day)[hour % 24] * np.asarray(self.week)[hour // 24 % 7]
        wanted = self.base + self.swing * shape
        for burst in self.bursts:
            since = hour - burst.start
            phase = since if burst.every is None else since % burst.every
            wanted = wanted + burst.cards * ((since >= 0) & (phase < burst.hours))
        growth: Floats = (1.0 + self.growth_per_year) ** (hour / HOURS_PER_YEAR)
        result: Floats = wanted * growth
        return result

    def interruptible_hourly(self, hours: int = HOURS_PER_YEAR) -> Floats:
        """Cards in each hour whose work may be stopped. [1], shape (hours,)"""
        hour = np.arange(hours)
        base = self.base * (1.0 + self.growth_per_year) ** (hour / HOURS_PER_YEAR)
        result: Floats = self.interruptible * np.maximum(self.hourly(hours) - base, 0.0)
        return result


@dataclass(frozen=True, slots=True)
class ServerPlatform:
    """One server model as the site and the buyer see it."""

    slug: str
    name: str
    accelerator: str
    accelerators: int
    price: Money
    max_power_kw: float
    rack_units: int
    idle_power_kw: float | None = None  # None: the default share of the maximum
    weight_kg: float | None = None
    liquid_cooled: bool = False

    def __post_init__(self) -> None:
        checks.price("server.price", self.price)
        checks.positive("server.max_power_kw", self.max_power_kw)
        if self.accelerators < 1:
            raise checks.refuse("server.accelerators", self.accelerators, ">= 1")
        if self.rack_units < 1:
            raise checks.refuse("server.rack_units", self.rack_units, ">= 1")
        if self.idle_power_kw is not None and not 0 <= self.idle_power_kw <= self.max_power_kw:
            raise checks.refuse(
                "server.idle_power_kw", self.idle_power_kw, f"0 .. {self.max_power_kw}"
            )


@dataclass(frozen=True, slots=True)
class Site:
    """A machine room: what it can carry and what is taken already."""

    name: str
    power_kw: float  # IT power it can feed
    cooling_kw: float  # heat it can remove
    racks: int
    kw_per_rack: float  # what one rack can be fed and cooled
    units_per_rack: int = 42
    used_power_kw: float = 0.0
    used_cooling_kw: float = 0.0
    used_racks: int = 0
    floor_kg_per_rack: float | None = None  # None: not stated
    liquid_cooling: bool = False

    def __post_init__(self) -> None:
        for field in ("power_kw", "cooling_kw", "racks", "kw_per_rack", "units_per_rack"):
            checks.non_negative(f"site.{field}", getattr(self, field))
        for used, whole in (
            ("used_power_kw", self.power_kw),
            ("used_cooling_kw", self.cooling_kw),
            ("used_racks", self.racks),
        ):
            if not 0 <= getattr(self, used) <= whole:
                raise checks.refuse(f"site.{used}", getattr(self, used), f"0 .. {whole:g}")
