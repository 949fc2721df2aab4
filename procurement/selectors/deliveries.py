"""What the packing list says against what was scanned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from procurement.models import Asset, Delivery
from procurement.models.assets import AssetKind


@dataclass(frozen=True, slots=True)
class PackingDifferences:
    """Serial numbers announced and not scanned, and scanned and not announced."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)


def packing_list_differences(
    delivery: Delivery, assets: Iterable[Asset]
) -> PackingDifferences | None:
    """None when the vendor sent no list or nothing was scanned yet. Servers and replacements are not on the list."""
    announced = {row.folded_serial: row.serial for row in delivery.announced.all()}
    scanned = {
        asset.folded_serial: asset.serial
        for asset in assets
        if asset.kind != AssetKind.NODE and asset.replaces_id is None
    }
    if not announced or not scanned:
        return None
    return PackingDifferences(
        tuple(sorted(serial for key, serial in announced.items() if key not in scanned)),
        tuple(sorted(serial for key, serial in scanned.items() if key not in announced)),
    )
