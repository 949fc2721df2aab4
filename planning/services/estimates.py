"""Estimates over the catalogue that holds: the organisation's corrected rows, or the shipped files without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

from django.db import OperationalError, ProgrammingError

from catalog import reference as shipped
from catalog import selectors
from catalog.models import Accelerator as AcceleratorRow
from planning import reference
from planning.calibration.apply import as_measured, as_told, class_of
from planning.estimators.types import Accelerator
from planning.models.calibration import CalibrationVersion
from planning.selectors.calibration import factor_for, in_force
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
    """Answer a request with the calibration in force. Raises InputError, WorkloadErrors or InfeasibleError."""
    request = parse_request(data)
    version = in_force()
    if version is None:
        return estimate(request, catalogue())
    work = class_of(request.kind)
    answer = estimate(request, _as_measured(catalogue(), version, work))
    told = [
        replace(
            found,
            estimate=as_told(
                found.estimate, factor_for(version, found.accelerator.slug, work), version.number
            ),
        )
        for found in answer.estimates
    ]
    return replace(answer, estimates=tuple(told))


def _as_measured(catalogue: Catalogue, version: CalibrationVersion, work: str) -> Catalogue:
    """The catalogue with its accelerators as they run here."""

    def here(card: Accelerator) -> Accelerator:
        return as_measured(card, factor_for(version, card.slug, work))

    return replace(
        catalogue,
        accelerators=lambda: {slug: here(card) for slug, card in catalogue.accelerators().items()},
        find_accelerators=lambda names: [here(card) for card in catalogue.find_accelerators(names)],
    )
