"""What a scan in progress says: which units are on the list, twice, unexpected, or were here before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from procurement.models import Asset, Delivery, OrderLine
from procurement.serials import UnitEntry, duplicate_uuids, fold
from procurement.states import AssetStatus


@dataclass(frozen=True, slots=True)
class LineScan:
    """The scan of one order line so far. Positions are counted from 1."""

    line: OrderLine
    count: int
    twice: tuple[tuple[str, int, int], ...]
    known: tuple[tuple[str, int], ...]
    uuids_twice: tuple[tuple[str, int, int], ...]
    uuids_known: tuple[tuple[str, int, Asset], ...]  # with the unit that has it

    @property
    def is_clean(self) -> bool:
        return not (self.twice or self.known or self.uuids_twice or self.uuids_known)


@dataclass(frozen=True, slots=True)
class Scan:
    """The whole scan against the packing list. `announced` is None when the vendor sent no list."""

    lines: tuple[LineScan, ...]
    announced: int | None
    matched: int
    unexpected: tuple[str, ...]
    missing: tuple[str, ...]


def check_scan(
    scanned: Mapping[int, Sequence[UnitEntry]],
    lines: Sequence[OrderLine],
    delivery: Delivery | None,
) -> Scan:
    """Compare what was scanned so far; changes nothing and refuses nothing."""
    listed = {row.folded_serial: row.serial for row in delivery.announced.all()} if delivery else {}
    found = []
    everything: dict[str, str] = {}
    for line in lines:
        units = scanned.get(line.position, ())
        first: dict[str, int] = {}
        twice = []
        for position, unit in enumerate(units, 1):
            key = fold(unit.serial)
            if key in first:
                twice.append((unit.serial, first[key], position))
            first.setdefault(key, position)
            everything.setdefault(key, unit.serial)
        here = set(
            Asset.objects.exclude(status=AssetStatus.VOIDED)
            .filter(folded_manufacturer=fold(line.manufacturer), folded_serial__in=list(first))
            .values_list("folded_serial", flat=True)
        )
        known = tuple(
            (units[position - 1].serial, position) for key, position in first.items() if key in here
        )
        positions = {fold(unit.uuid): n for n, unit in enumerate(units, 1) if fold(unit.uuid)}
        owners = Asset.objects.exclude(status=AssetStatus.VOIDED).filter(uuid__in=positions)
        taken = sorted(
            (
                (units[positions[owner.uuid or ""] - 1].uuid, positions[owner.uuid or ""], owner)
                for owner in owners
            ),
            key=lambda row: row[1],
        )
        found.append(
            LineScan(line, len(units), tuple(twice), known, duplicate_uuids(units), tuple(taken))
        )
    return Scan(
        lines=tuple(found),
        announced=len(listed) if listed else None,
        matched=sum(key in listed for key in everything),
        unexpected=tuple(s for key, s in everything.items() if key not in listed) if listed else (),
        missing=tuple(s for key, s in listed.items() if key not in everything),
    )
