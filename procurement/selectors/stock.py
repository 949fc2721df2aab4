"""Accelerators in service, and which of them no request needs any more: what studies offer for reuse."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

from core.organisation import organisation
from planning.study.search.snapshot import IdleStock
from procurement.models import Asset
from procurement.models.assets import AssetKind
from procurement.states import AssetStatus


def free_cards(on: date) -> list[IdleStock]:
    """Cards in service by accelerator and site. Free are those whose request's duration has passed since they went into
    service: without a duration, or without a request, nobody has said that they may be taken. One query."""
    owned: Counter[tuple[str, str]] = Counter()
    free: Counter[tuple[str, str]] = Counter()
    rows = Asset.objects.filter(
        kind=AssetKind.ACCELERATOR, status=AssetStatus.IN_SERVICE, in_service_at__isnull=False
    ).exclude(accelerator_slug="")
    # the revision that counts now is the one of the request's own number
    found = rows.values_list(
        "accelerator_slug", "site", "in_service_at", "request__revision_number", "request__revisions__number",
        "request__revisions__duration_days",
    )  # fmt: skip
    zone = organisation().zone if found else None
    for slug, site, began, number, revision, days in found:
        if number != revision or began is None:
            continue
        owned[slug, site] += 1
        if days is not None and began.astimezone(zone).date() + timedelta(days=days) < on:
            free[slug, site] += 1
    return [
        IdleStock(slug, cards, free[slug, site], site)
        for (slug, site), cards in sorted(owned.items())
    ]
