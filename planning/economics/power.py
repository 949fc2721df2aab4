"""Power: energy of a fleet by hour of day from its load curve, and the racks that can feed it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from core.errors import InputError
from core.messages import msg
from planning.economics import checks
from planning.economics.checks import Floats
from planning.economics.types import ServerPlatform

DAYS_PER_YEAR = 365


def energy_by_hour(
    server: ServerPlatform,
    servers: int,
    *,
    utilisation: float,
    day_load: Sequence[float],
    load_share: float,
    idle_share: float,
) -> Floats:
    """Energy a year in each hour of the day, before PUE. [kWh], shape (24,)

    Draw rises linearly from idle to `load_share` of the maximum; `day_load` is the shape of the day, scaled so that
    its mean is `utilisation`.

    Raises
    ------
    InputError
        If that shape asks for more than all cards at its peak.
    """
    shape = checks.series("day_load", day_load, upper=1.0)
    mean = float(shape.mean())
    busy = utilisation * shape / mean if mean > 0 else np.full(shape.size, utilisation)
    if busy.max() > 1 + 1e-9:
        raise InputError(
            "day_load",
            msg(
                "A utilisation of %(utilisation)s %% with this shape of day asks for more than all cards at its peak",
                utilisation=round(utilisation * 100, 1),
            ),
            value=float(busy.max()),
            limit=1.0,
        )
    top = server.max_power_kw
    idle = idle_share * top if server.idle_power_kw is None else server.idle_power_kw
    energy: Floats = (idle + (load_share * top - idle) * busy) * servers * DAYS_PER_YEAR
    return energy


def racks_needed(server: ServerPlatform, servers: int, kw_per_rack: float) -> int:
    """Racks for `servers`; a server that draws more than one rack is given takes several. [1]"""
    each = math.floor(round(kw_per_rack / server.max_power_kw, 9))
    if each >= 1:
        return math.ceil(servers / each)
    return servers * math.ceil(round(server.max_power_kw / kw_per_rack, 9))
