"""Estimates over the catalogue that holds: the organisation's corrected rows, or the shipped files without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any

from django.db import OperationalError, ProgrammingError

from catalog import reference as shipped
from catalog import selectors
from catalog.models import Accelerator as AcceleratorRow
from planning import reference
from planning.estimators.types import Accelerator
from planning.study.estimates import Answer, Catalogue, estimate
from planning.study.model import KnownModel
from planning.study.request import parse_request


def catalogue() -> Catalogue:
    """The database's rows with their corrections when a catalogue is loaded there, else the shipped files."""
    try:
        loaded = AcceleratorRow.objects.filter(current__isnull=False).exists()
    except (OperationalError, ProgrammingError):  # no database, or one that was never migrated
        loaded = False
    return database_catalogue() if loaded else shipped_catalogue()


def shipped_catalogue() -> Catalogue:
    """The reference files. Needs no database."""
    return Catalogue(
        origin="shipped",
        accelerators=reference.accelerators,
        find_accelerators=lambda names: [reference.resolve_accelerator(name) for name in names],
        find_model=reference.resolve_model,
        as_of=_shipped_as_of(),
    )


@cache
def _shipped_as_of() -> date:
    return max(row["as_of"] for row in shipped.accelerators().values())


def database_catalogue() -> Catalogue:
    """The organisation's rows. One query for the accelerators, one for the model."""
    return Catalogue(
        origin="database",
        accelerators=reference.accelerators_from_database,
        find_accelerators=_find_accelerators,
        find_model=_find_model,
        as_of=selectors.newest_figure(),
    )


def _find_accelerators(names: Sequence[str]) -> list[Accelerator]:
    called = {name: [s for s in (name, shipped.accelerator_slug(name)) if s] for name in names}
    rows = selectors.accelerators_by_slug(slug for slugs in called.values() for slug in slugs)
    found = []
    for name, slugs in called.items():
        row = next((rows[slug] for slug in slugs if slug in rows), None)
        if row is None:
            raise reference.unknown_accelerator(name)
        found.append(reference.accelerator(selectors.accelerator_row(row)))
    return found


def _find_model(name: str) -> KnownModel:
    slugs = [slug for slug in (name, shipped.architecture_slug(name)) if slug]
    rows = {row.slug: row for row in selectors.architectures().filter(slug__in=slugs)}
    found = next((rows[slug] for slug in slugs if slug in rows), None)
    if found is None:
        raise reference.unknown_model(name)
    return reference.known_model(selectors.architecture_row(found))


def estimate_request(data: Mapping[str, Any]) -> Answer:
    """Parse and answer a request. Raises InputError, WorkloadErrors or InfeasibleError."""
    return estimate(parse_request(data), catalogue())
