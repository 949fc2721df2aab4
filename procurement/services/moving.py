"""Units change their place; where they were stays in the trail."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from django.db import transaction

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from procurement.models import Asset
from procurement.services.assets import install_assets
from procurement.services.moves import take, touch
from procurement.states import AssetStatus


@transaction.atomic
def move_assets(
    *, asset_ids: Sequence[int], site: str, by: User, rack: str = "", rack_unit: str = ""
) -> list[Asset]:
    """Note the new place of units that are installed already: all of them or none."""
    if not asset_ids:
        raise InputError("asset_ids", msg("Choose at least one unit"), value=0, limit=1)
    if not site.strip():
        raise InputError("site", msg("Say where the units are"))
    batch = uuid4()
    moved = []
    for pk in sorted(set(asset_ids)):
        asset = take(Asset.objects.select_related("request"), pk, action="move", by=by)
        before = [asset.site, asset.rack, asset.rack_unit]
        asset.site, asset.rack, asset.rack_unit = site.strip()[:80], rack[:40], rack_unit[:20]
        asset.save(update_fields=["site", "rack", "rack_unit"])
        touch(asset)
        record(
            "asset.moved", on=asset, by=by, batch=batch, before=before,
            after=[asset.site, asset.rack, asset.rack_unit],
        )  # fmt: skip
        moved.append(asset)
    return moved


@transaction.atomic
def place_assets(
    *, asset_ids: Sequence[int], site: str, by: User, rack: str = "", rack_unit: str = ""
) -> list[Asset]:
    """Put units in a place: those just received are installed there, the others moved. All of them or none."""
    new = set(
        Asset.objects.filter(pk__in=asset_ids, status=AssetStatus.RECEIVED).values_list(
            "pk", flat=True
        )
    )
    place = {"site": site, "rack": rack, "rack_unit": rack_unit}
    there = [pk for pk in asset_ids if pk not in new]
    if not new and not there:
        raise InputError("asset_ids", msg("Choose at least one unit"), value=0, limit=1)
    placed = install_assets(asset_ids=sorted(new), by=by, **place) if new else []
    return placed + (move_assets(asset_ids=there, by=by, **place) if there else [])
