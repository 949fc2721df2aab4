"""Promised against measured: each promised figure beside what files show of it, unit by unit, and the money."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from statistics import median
from typing import Any

from django.db.models import Q

from core.messages import Message, msg
from core.money import Money, round_amount
from procurement.models import Asset, Delivery, Measurement, OrderLine, PerformancePromise
from procurement.models.assets import AssetKind
from procurement.per import Per
from procurement.promises import BENCHMARKS, in_unit, is_kept, shortfall, told, worth
from procurement.states import GONE_ASSET


@dataclass(frozen=True, slots=True)
class UnitShortfall:
    """One unit against one promise. `measured` None: no sound file shows it, which is not zero and no pass."""

    asset: Asset
    cards: int  # that the unit stands for
    promised: Decimal  # of this unit, in the promise's unit
    unit: str
    measured: Decimal | None
    source: Measurement | None  # one of the figures it rests on
    earlier: int  # figures that a later one followed
    share: Decimal | None  # missing share of the promise [1]
    money: Money | None
    kept: bool | None

    @property
    def is_typed(self) -> bool:
        """Whether a person typed the figure in, or one of those that it is made of."""
        return self.source is not None and self.source.recorded_by_id is not None

    @property
    def words(self) -> Message | None:
        if self.measured is None or self.source is None:
            return None
        return told(self.promised, self.measured, self.unit)


@dataclass(frozen=True)
class PromiseResult:
    """One promise of the order beside all units of the delivery that it is about."""

    promise: PerformancePromise
    line: OrderLine
    units: tuple[UnitShortfall, ...]

    @cached_property
    def measured(self) -> tuple[UnitShortfall, ...]:
        return tuple(unit for unit in self.units if unit.measured is not None)

    @cached_property
    def typed(self) -> tuple[UnitShortfall, ...]:
        """Units whose figure a person typed in."""
        return tuple(unit for unit in self.measured if unit.is_typed)

    @property
    def missing(self) -> int:
        """Units without a figure."""
        return len(self.units) - len(self.measured)

    @cached_property
    def short(self) -> tuple[UnitShortfall, ...]:
        """Units beyond the tolerance, the worst first."""
        found = [unit for unit in self.measured if not unit.kept]
        return tuple(sorted(found, key=lambda unit: (-(unit.share or 0), unit.asset.serial)))

    @property
    def worst(self) -> UnitShortfall | None:
        return max(self.measured, key=lambda unit: unit.share or 0, default=None)

    @cached_property
    def alike(self) -> tuple[UnitShortfall, ...]:
        """The measured units that stand for the same: of servers beside single cards, those that are more in number."""
        if not self.measured:
            return ()
        [(promised, _n)] = Counter(unit.promised for unit in self.measured).most_common(1)
        return tuple(unit for unit in self.measured if unit.promised == promised)

    @property
    def median_measured(self) -> Decimal | None:
        """Over units of one kind: the middle between a server and a card would be neither's."""
        figures = [unit.measured for unit in self.alike if unit.measured is not None]
        return median(figures) if figures else None

    @property
    def share(self) -> Decimal | None:
        """Missing share over all measured units. [1]"""
        promised = sum((unit.promised for unit in self.measured), Decimal(0))
        if not promised:
            return None
        missing = sum((unit.promised * (unit.share or 0) for unit in self.measured), Decimal(0))
        return missing / promised

    @property
    def money(self) -> Money | None:
        """What the shortfall of the measured units is worth, rounded once. None: nothing is measured."""
        if not self.measured:
            return None
        return sum_money(self.line.order.currency, (unit.money for unit in self.measured))

    @property
    def state(self) -> str:
        """missed, open (units without a figure, or no unit at all) or kept."""
        if self.short:
            return "missed"
        return "kept" if self.measured and not self.missing else "open"


def sum_money(currency: str, amounts: Iterable[Money | None]) -> Money:
    """The sum, rounded to the currency's minor unit."""
    total = sum((amount.amount for amount in amounts if amount is not None), Decimal(0))
    return Money(round_amount(total, currency), currency)


def promised_against_measured(
    delivery: Delivery, *, assets: Iterable[int] | None = None
) -> list[PromiseResult]:
    """Every promise on the ordered lines that came with `delivery`, in a number of queries that does not grow.

    `assets` (ids) narrows the units, to those of one acceptance for instance, and leaves promises about none of them
    out; None: all that are not gone. What a server shows is of all of its cards, whichever are asked for.
    """
    promises = list(
        PerformancePromise.objects.filter(line__order_lines__receipts__delivery=delivery)
        .order_by("line__position", "pk")
        .distinct()
    )
    if not promises:
        return []
    lines: dict[int, list[OrderLine]] = defaultdict(list)
    for line in OrderLine.objects.filter(receipts__delivery=delivery).select_related("order"):
        lines[line.quote_line_id].append(line)
    asked = None if assets is None else frozenset(assets)
    there = Asset.objects.filter(receipt_line__delivery=delivery).exclude(status="voided")
    in_place = ~Q(status__in=GONE_ASSET)
    there = there.filter(in_place if asked is None else in_place | Q(pk__in=asked))
    units = list(there.select_related("parent", "receipt_line").order_by("serial"))
    figures: dict[tuple[int, str], list[Measurement]] = defaultdict(list)
    for row in (
        Measurement.objects.filter(delivery=delivery)
        .that_count()
        .select_related("evidence__file")
        .defer("evidence__result")
        .order_by("measured_at", "pk")
    ):
        figures[row.asset_id, row.benchmark].append(row)
    by_line: dict[int, list[Asset]] = defaultdict(list)
    for asset in units:
        if asset.receipt_line is not None:
            by_line[asset.receipt_line.order_line_id].append(asset)
    names: dict[tuple[int, str, str], int] = defaultdict(int)
    for promise in promises:
        names[promise.line_id, promise.benchmark, promise.unit] += 1
    found = [
        PromiseResult(
            promise,
            line,
            tuple(
                _units(
                    promise,
                    line,
                    by_line[line.pk],
                    figures,
                    asked=asked,
                    alone=names[promise.line_id, promise.benchmark, promise.unit] == 1,
                )
            ),
        )
        for promise in promises
        for line in lines[promise.line_id]
    ]
    return [result for result in found if result.units or asked is None]


Figures = Mapping[tuple[int, str], Sequence[Measurement]]


def _units(
    promise: PerformancePromise,
    line: OrderLine,
    assets: Sequence[Asset],
    figures: Figures,
    *,
    asked: Collection[int] | None,
    alone: bool,
) -> Iterable[UnitShortfall]:
    """The units a promise is about, of those `asked` for: servers for one per server where they are whole, else cards.

    `assets` are all of the line that count, so that a server's figure is shared among all of its cards.
    """
    in_node: dict[int, list[Asset]] = defaultdict(list)
    for asset in assets:
        if asset.kind == AssetKind.ACCELERATOR and asset.parent_id is not None:
            in_node[asset.parent_id].append(asset)
    adds_up = BENCHMARKS[promise.benchmark].adds_up
    per_item = max(line.accelerators_per_item, 1)
    # A promise for eight cards is held against eight: a server short of some, or taken in part, goes card by card.
    whole = {
        node
        for node, inside in in_node.items()
        if len(inside) >= per_item and (asked is None or all(card.pk in asked for card in inside))
    }
    nodes = {asset.pk for asset in assets if asset.kind == AssetKind.NODE}
    for asset in assets:
        if asked is not None and asset.pk not in asked:
            continue
        inside = in_node.get(asset.pk, [])
        if promise.per == Per.SERVER and asset.kind == AssetKind.NODE and asset.pk in whole:
            row, earlier = _own(promise, asset, figures, alone)
            value = _value(promise, row)
            if _is_weak(row):
                of_cards, source = _of_cards(promise, inside, figures, alone, adds_up=adds_up)
                if source is not None and (row is None or not _is_weak(source)):
                    value, row, earlier = of_cards, source, 0
            yield _unit(promise, line, asset, len(inside), promise.value, value, row, earlier)
        elif asset.kind == AssetKind.ACCELERATOR and (
            promise.per == Per.CARD
            or asset.parent_id is None
            or (asset.parent_id in nodes and asset.parent_id not in whole)
        ):
            row, earlier = _own(promise, asset, figures, alone)
            value = _value(promise, row)
            if _is_weak(row) and asset.parent_id is not None and asset.parent is not None:
                source, before = _own(promise, asset.parent, figures, alone)
                of_server = _value(promise, source)
                if of_server is not None and (row is None or not _is_weak(source)):
                    cards = max(len(in_node[asset.parent_id]), per_item)
                    value, row, earlier = of_server / (cards if adds_up else 1), source, before
            wanted = promise.value
            if promise.per == Per.SERVER and adds_up:
                wanted = wanted / per_item
            yield _unit(promise, line, asset, 1, wanted, value, row, earlier)


def _is_weak(row: Measurement | None) -> bool:
    """Whether a figure gives way to a reader's of the whole server, or of its cards: there is none, or it was typed."""
    return row is None or row.recorded_by_id is not None


def _value(promise: PerformancePromise, row: Measurement | None) -> Decimal | None:
    return None if row is None else in_unit(row.value, row.unit, promise.unit)


def _own(
    promise: PerformancePromise, asset: Asset, figures: Figures, alone: bool
) -> tuple[Measurement | None, int]:
    """The newest figure of the unit that is of this promise, and how many it followed.

    Typed figures count where no reader found one, whatever came last.
    """
    every = [
        row for row in figures.get((asset.pk, promise.benchmark), ()) if _is_of(promise, row, alone)
    ]
    found = [row for row in every if row.recorded_by_id is None] or every
    return (found[-1], len(found) - 1) if found else (None, 0)


def _is_of(promise: PerformancePromise, row: Measurement, alone: bool) -> bool:
    """Whether a figure is of this promise: by its name where the benchmark has many forms, and by a unit that compares.

    A file that does not name its benchmark counts where only one promise can be meant.
    """
    if in_unit(row.value, row.unit, promise.unit) is None:
        return False
    if promise.benchmark not in ("mlperf", "other"):
        return True
    if row.name:
        return row.name.casefold() == promise.name.casefold()
    return alone and promise.benchmark == "mlperf"


def _of_cards(
    promise: PerformancePromise,
    cards: Sequence[Asset],
    figures: Figures,
    alone: bool,
    *,
    adds_up: bool,
) -> tuple[Decimal | None, Measurement | None]:
    """A server's figure from all of its cards: their sum, or the lowest of a path's speed; None when one is missing."""
    rows = [_own(promise, card, figures, alone)[0] for card in cards]
    values = [in_unit(row.value, row.unit, promise.unit) for row in rows if row is not None]
    exact = [value for value in values if value is not None]
    if len(exact) < len(cards):
        return None, None
    typed = [row for row in rows if row is not None and row.recorded_by_id is not None]
    return (sum(exact, Decimal(0)) if adds_up else min(exact)), typed[0] if typed else rows[0]


def _unit(
    promise: PerformancePromise,
    line: OrderLine,
    asset: Asset,
    cards: int,
    wanted: Decimal,
    value: Decimal | None,
    source: Measurement | None,
    earlier: int,
) -> UnitShortfall:
    if value is None:
        return UnitShortfall(
            asset, cards, wanted, promise.unit, None, None, earlier, None, None, None
        )
    share = shortfall(wanted, value)
    price = line.unit_price / max(line.accelerators_per_item, 1)
    amount = Money(worth(price, cards, share), line.order.currency)
    kept = is_kept(share, promise.tolerance_rate)
    return UnitShortfall(
        asset, cards, wanted, promise.unit, value, source, earlier, share, amount, kept
    )


def deciding(
    results: Iterable[PromiseResult], asset: Asset
) -> list[tuple[PromiseResult, UnitShortfall]]:
    """What decides acceptance of `asset`: deciding promises about it, or about the server that it is in."""
    return [
        (result, unit)
        for result in results
        if result.promise.blocking
        for unit in result.units
        if unit.asset.pk in (asset.pk, asset.parent_id)
    ]


def rule() -> Message:
    """How the money is computed, for whoever reads the amount."""
    return msg(
        "Price of one card (price of the item without tax ÷ its cards) × shortfall; shortfall = 1 − measured ÷ "
        "promised, at least 0; a server counts as its cards. Units without a figure are not counted."
    )


def result_json(result: PromiseResult, *, with_money: bool) -> dict[str, Any]:
    """One promise as the API tells it."""

    def plain(value: Decimal | None) -> str | None:
        return None if value is None else f"{value.normalize():f}"

    def amount(money: Money | None) -> dict[str, str] | None:
        if not with_money or money is None:
            return None
        return {
            "amount": str(round_amount(money.amount, money.currency)),
            "currency": money.currency,
        }

    return {
        "line": result.line.position,
        "benchmark": result.promise.benchmark,
        "name": result.promise.label,
        "promised": plain(result.promise.value),
        "unit": result.promise.unit,
        "per": result.promise.per,
        "tolerance_rate": plain(result.promise.tolerance_rate),
        "blocking": result.promise.blocking,
        "state": result.state,
        "units_measured": len(result.measured),
        "units_missing": result.missing,
        "units_short": len(result.short),
        "shortfall_rate": None if result.share is None else f"{result.share:.5f}",
        "shortfall_money": amount(result.money),
        "units": [
            {
                "serial": unit.asset.serial,
                "kind": unit.asset.kind,
                "cards": unit.cards,
                "promised": plain(unit.promised),
                "measured": plain(unit.measured),
                "shortfall_rate": None if unit.share is None else f"{unit.share:.5f}",
                "shortfall_money": amount(unit.money),
                "kept": unit.kept,
                "evidence": None if unit.source is None else unit.source.evidence_id,
                "measured_at": None if unit.source is None else unit.source.measured_at.isoformat(),
                # "recorded": the file tells no end of its run
                "measured_at_is": None
                if unit.source is None
                else ("run_end" if unit.source.is_of_run else "recorded"),
                "typed_by_a_person": unit.is_typed,
                "earlier_figures": unit.earlier,
            }
            for unit in result.units
        ],
    }
