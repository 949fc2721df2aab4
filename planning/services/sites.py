"""Describing machine rooms: one function for a new and a changed one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction

from core import transitions
from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from core.money import CURRENCIES
from core.policies import require
from core.stale import check_version
from planning import policies
from planning.economics import checks
from planning.economics import types as economics
from planning.models.sites import Site

PUE = (1.0, 3.0)


@transaction.atomic
def save_site(
    *, by: User, name: str, site_id: int | None = None, version: int | None = None, **figures: Any
) -> Site:
    """Add a site, or change the one with `site_id`; figures left out stay as they are.

    Raises NotPermitted, StaleData, or InputError at the field (more in use than there is, a price without currency).
    """
    require(policies.can_keep_sites(by))
    site = Site() if site_id is None else transitions.lock(Site.objects.all(), site_id)
    if site_id is not None:
        check_version(site, version)
        site.version += 1
    before = {field: getattr(site, field) for field in Site.FIGURES}
    site.name = name.strip()
    if not site.name:
        raise InputError("name", msg("%(field)s is missing", field="name"))
    for field in figures:
        setattr(site, field, figures[field])
    _check(site)
    try:
        with transaction.atomic():
            site.save()
    except IntegrityError as error:
        raise InputError(
            "name", msg("There is a site of this name already"), value=site.name
        ) from error
    changes = {
        field: [_plain(old), _plain(getattr(site, field))]
        for field, old in before.items()
        if old != getattr(site, field)
    }
    record("site.added" if site_id is None else "site.changed", on=site, by=by, changes=changes)
    return site


def _check(site: Site) -> None:
    site.country = site.country.strip().upper()
    if site.country and not (
        site.country.isascii() and site.country.isalpha() and len(site.country) == 2
    ):
        raise checks.refuse("country", site.country, "CN, SG, US …")
    for field in ("power_kw", "cooling_kw", "racks", "kw_per_rack"):
        if getattr(site, field) is None:
            raise InputError(field, msg("%(field)s is missing", field=field))
    try:
        room(site)
    except InputError as error:  # the pure type names its fields as site.power_kw
        raise InputError(
            error.field.removeprefix("site."), error.message, value=error.value, limit=error.limit
        ) from error
    if site.pue is not None and not PUE[0] <= site.pue <= PUE[1]:
        raise checks.refuse("pue", site.pue, f"{PUE[0]:g} .. {PUE[1]:g}")
    if site.floor_kg_per_rack is not None:
        checks.non_negative("floor_kg_per_rack", site.floor_kg_per_rack)
    for field in ("charge_per_kw_month", "tariff_per_kwh"):
        price = getattr(site, field)
        if price is None:
            continue
        checks.non_negative(field, float(price))
        if site.currency not in CURRENCIES:
            raise InputError("currency", msg("A price needs its currency"), value=site.currency)


def room(site: Site) -> economics.Site:
    """The site as the economics take it."""
    return economics.Site(
        name=site.name,
        power_kw=site.power_kw,
        cooling_kw=site.cooling_kw,
        racks=site.racks,
        kw_per_rack=site.kw_per_rack,
        units_per_rack=site.units_per_rack,
        used_power_kw=site.used_power_kw,
        used_cooling_kw=site.used_cooling_kw,
        used_racks=site.used_racks,
        floor_kg_per_rack=site.floor_kg_per_rack,
        liquid_cooling=site.liquid_cooling,
    )


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value
