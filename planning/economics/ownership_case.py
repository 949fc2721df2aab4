"""The inputs of owning: servers, housing, power, people, risks and rates, checked; and the default case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.money import Money
from planning.economics import checks, defaults, exact
from planning.economics.depreciation import Depreciation, check_residual
from planning.economics.power import DAYS_PER_YEAR
from planning.economics.types import ServerPlatform


@dataclass(frozen=True, slots=True)
class Housing:
    """Where the servers stand. Prices left out are not part of that kind of housing."""

    per_kw_month: Money | None = None  # colocation, by contracted kW of maximum draw
    per_rack_year: Money | None = None
    kw_per_rack: float | None = None  # needed to count racks
    room_per_kw: Money | None = None  # own room: capex per kW of maximum draw
    includes_power: bool = False  # then power and cooling are not paid a second time

    def __post_init__(self) -> None:
        prices = (self.per_kw_month, self.per_rack_year, self.room_per_kw)
        if all(price is None for price in prices):
            raise checks.refuse("housing", "no price", "a price per kW, per rack or of an own room")
        for price in prices:
            if price is not None:
                checks.price("housing", price)
        if self.per_rack_year is not None and self.kw_per_rack is None:
            raise checks.refuse("housing.kw_per_rack", "missing", "given with a price per rack")
        if self.kw_per_rack is not None:
            checks.positive("housing.kw_per_rack", self.kw_per_rack)


@dataclass(frozen=True, slots=True)
class OwnershipCase:
    """All that owning a fleet depends on. Shares and rates are fractions, money is in one currency."""

    server: ServerPlatform
    servers: int
    housing: Housing
    tariff: tuple[Money, ...]  # per kWh: one price, or 24 by the hour of day
    staff_per_fte_year: Money
    fte: float
    years: int = 3
    network_share: float = defaults.value("network.share")
    storage_share: float = defaults.value("storage.share")
    spares_ratio: float = defaults.value("spares.ratio")
    pue: float = defaults.value("pue.colocation")
    load_share: float = defaults.value("power.load_share")  # of maximum draw, when busy
    idle_share: float = defaults.value("power.idle_share")
    day_load: tuple[float, ...] = (1.0,) * 24  # shape of the day, scaled by utilisation
    utilisation: float = defaults.value("utilisation.owned")
    repairs_per_year: float = defaults.value("replacement.per_accelerator_year")
    repair_days: float = defaults.value("repair.days")
    warranty_months: int = 12  # within the quotation
    extended_warranty: bool = True  # bought for the time after; without it repairs are paid
    warranty_rate: float = defaults.value("warranty.rate")  # a year, of the server price
    software_per_accelerator_year: Money | None = None
    insurance_rate: float = defaults.value("insurance.rate")
    lead_weeks: float = defaults.value("lead_weeks.in_stock")
    acceptance_days: float = defaults.value("acceptance.days")
    duty_rate: float = 0.0
    vat_rate: float = 0.0
    vat_reclaimed: bool = True
    income_tax_rate: float = 0.0
    depreciation: Depreciation = Depreciation.STRAIGHT
    depreciation_years: int = int(defaults.value("depreciation.years"))
    residual: tuple[float, ...] = defaults.curve(
        "residual.h100"
    )  # of the server price after 1, 2, ... years
    discount_rate: float = defaults.value("discount_rate")

    def __post_init__(self) -> None:
        for field in ("servers", "years", "depreciation_years"):
            if getattr(self, field) < 1:
                raise checks.refuse(field, getattr(self, field), ">= 1")
        for field in (
            "spares_ratio", "load_share", "idle_share", "utilisation", "repairs_per_year", "duty_rate",
            "vat_rate", "income_tax_rate", "warranty_rate", "insurance_rate",
        ):  # fmt: skip
            checks.fraction(field, getattr(self, field))
        for field in (
            "fte",
            "repair_days",
            "warranty_months",
            "lead_weeks",
            "acceptance_days",
            "discount_rate",
        ):
            checks.non_negative(field, getattr(self, field))
        for field in ("network_share", "storage_share"):
            checks.below_one(field, getattr(self, field))
        checks.below_one("network_share + storage_share", self.network_share + self.storage_share)
        if not 1 <= self.pue <= 3:
            raise checks.refuse("pue", self.pue, "1 .. 3")
        if self.idle_share > self.load_share:
            raise checks.refuse(
                "idle_share", self.idle_share, f"0 .. load_share {self.load_share:g}"
            )
        if len(self.tariff) not in (1, 24):
            raise checks.refuse("tariff", len(self.tariff), "1 price or 24")
        for price in (*self.tariff, self.staff_per_fte_year):
            checks.price("tariff or staff", price)
        if len(checks.series("day_load", self.day_load, upper=1.0)) != 24:
            raise checks.refuse("day_load", len(self.day_load), "24 values")
        check_residual(self.residual)
        checks.same_currency(
            "ownership", self.server.price, self.housing.per_kw_month, self.housing.per_rack_year,
            self.housing.room_per_kw, *self.tariff, self.staff_per_fte_year, self.software_per_accelerator_year,
        )  # fmt: skip

    @property
    def currency(self) -> str:
        """The one currency of the case."""
        return self.server.price.currency

    @property
    def accelerators(self) -> int:
        """Cards in service, spares not counted."""
        return self.servers * self.server.accelerators

    @property
    def availability(self) -> float:
        """Share of the cards that work: those in repair are replaced by spares as far as these go. [1]"""
        out = self.repairs_per_year * self.repair_days / DAYS_PER_YEAR
        return 1.0 - max(out - self.spares_ratio, 0.0)

    @property
    def waiting_years(self) -> float:
        """From order to first work. [year]"""
        return (self.lead_weeks * 7 + self.acceptance_days) / DAYS_PER_YEAR


# Fields of a case that are a cost default as it stands.
_NAMES = {
    "network_share": "network.share", "storage_share": "storage.share", "spares_ratio": "spares.ratio",
    "load_share": "power.load_share", "idle_share": "power.idle_share", "utilisation": "utilisation.owned",
    "repairs_per_year": "replacement.per_accelerator_year", "repair_days": "repair.days",
    "warranty_rate": "warranty.rate", "insurance_rate": "insurance.rate", "lead_weeks": "lead_weeks.in_stock",
    "acceptance_days": "acceptance.days", "discount_rate": "discount_rate",
}  # fmt: skip


def default_fte(accelerators: int) -> float:
    """Operations staff for a fleet: half a person at least, one per 150 cards. [FTE]"""
    checks.positive("accelerators", accelerators)
    return max(
        defaults.value("staff.minimum_fte"),
        accelerators / defaults.value("staff.accelerators_per_fte"),
    )


def default_case(server: ServerPlatform, servers: int, *, years: int = 3) -> OwnershipCase:
    """The case with the defaults of the server's currency: colocation at CNY or USD prices.

    Raises
    ------
    InputError
        If the server is priced in a currency without defaults; then every price must be given.
    """
    code = server.price.currency
    if code not in ("CNY", "USD"):
        raise checks.refuse("currency", code, "CNY or USD, or all prices given")
    key = code.lower()

    def money(name: str) -> Money:
        return Money(exact.to_decimal(defaults.value(name)), code)

    now: dict[str, Any] = {field: defaults.value(name) for field, name in _NAMES.items()}
    software = money("software.usd_per_accelerator_year") if code == "USD" else None
    return OwnershipCase(
        **now,
        depreciation_years=int(defaults.value("depreciation.years")),
        residual=defaults.curve("residual.h100"),
        server=server,
        servers=servers,
        years=years,
        housing=Housing(per_kw_month=money(f"colocation.{key}_per_kw_month")),
        tariff=(money(f"tariff.{key}_per_kwh"),),
        staff_per_fte_year=exact.times(
            money(f"staff.{key}_per_fte_year"), defaults.value("staff.loading")
        ),
        fte=default_fte(servers * server.accelerators),
        pue=defaults.value("pue.china" if code == "CNY" else "pue.colocation"),
        software_per_accelerator_year=software,
        vat_rate=defaults.value("vat.china") if code == "CNY" else 0.0,
    )
