"""Accelerators and models to pick from: the database's rows, or the shipped ones where none are loaded."""

from __future__ import annotations

from catalog import reference as shipped
from catalog.models import Accelerator, ModelArchitecture
from planning import reference

Groups = list[tuple[str, list[tuple[str, str]]]]


def accelerator_choices() -> Groups:
    """(maker, [(slug, name), …]) of all that can be estimated on, newest first: one query."""
    rows = Accelerator.objects.filter(current__hbm_bandwidth__isnull=False).exclude(
        current__peak_flops={}
    )
    listed = list(
        rows.order_by("vendor", "-year", "name").values_list("vendor", "slug", "name")
    ) or [
        (row["vendor"], row["slug"], row["name"])
        for row in shipped.accelerators().values()
        if reference.can_estimate(row)
    ]
    groups: dict[str, list[tuple[str, str]]] = {}
    for vendor, slug, name in listed:
        groups.setdefault(vendor, []).append((slug, name))
    return list(groups.items())


def model_choices(*, by_sample: bool = False) -> list[tuple[str, str]]:
    """(slug, name) of the models on tokens, or `by_sample` of those told by the work of one sample: one query."""
    kinds = reference.BY_SAMPLE if by_sample else reference.TRANSFORMERS
    rows = ModelArchitecture.objects.order_by("name").filter(kind__in=kinds)
    listed = list(rows.values_list("slug", "name"))
    return listed or [
        (row["slug"], row["name"])
        for row in shipped.architectures().values()
        if row["kind"] in kinds
    ]
