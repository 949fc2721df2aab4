"""Finding units by a pasted list of serial numbers."""

from __future__ import annotations

from procurement.models.assets import AssetQuerySet
from procurement.serials import fold, split_list


def found_serials(rows: AssetQuerySet, pasted: str) -> tuple[list[int], tuple[str, ...]]:
    """Ids of the units in `rows` that the list names, and the serials that none of them has, as pasted."""
    wanted = {fold(serial): serial for serial in split_list(pasted)}
    found: dict[str, list[int]] = {}
    keys = list(wanted)
    # In slices: databases limit the number of parameters of one query.
    for start in range(0, len(keys), 500):
        part = rows.filter(folded_serial__in=keys[start : start + 500])
        for pk, folded in part.values_list("pk", "folded_serial"):
            found.setdefault(folded, []).append(pk)
    missing = tuple(serial for key, serial in wanted.items() if key not in found)
    return [pk for ids in found.values() for pk in ids], missing
