"""A fleet's figures as ready text: tables of pools and queues, notes of tiles."""

from __future__ import annotations

from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalog.reference import accelerator_label
from core.templatetags.ui import percent, quantity, said, span
from planning.models.telemetry import Ownership
from planning.selectors.telemetry import Fleet, Pool, Queue, Use


def energy(use: Use) -> str:
    """Energy with its unit; a dash when no source told the power."""
    return quantity(use.energy_kwh * 1000, "Wh") if use.energy_kwh is not None else "–"


def shown(fleet: Fleet) -> dict[str, Any]:
    """What the page needs besides the figures themselves."""
    queue = fleet.queue
    return {
        "holes": [said(hole) for hole in fleet.holes],
        "covered": _("%(share)s of the hours have samples")
        % {"share": percent(fleet.total.covered)},
        "energy": energy(fleet.total),
        "jobs": ngettext("%(n)s job", "%(n)s jobs", queue.jobs) % {"n": number_format(queue.jobs)},
        "pool_columns": pool_columns(),
        "pools": [pool_row(pool) for pool in fleet.pools],
        "queue_columns": queue_columns(),
        "queues": [
            queue_row(team or _("All"), found)
            for team, found in sorted(
                fleet.queues.items(), key=lambda item: (item[0] != "", item[0])
            )
        ],
    }


def pool_columns() -> list[tuple[str, str]]:
    return [
        (_("Team"), ""), (_("Accelerator"), ""), (_("Ownership"), ""), (_("Cards"), "num"),
        (_("GPU utilisation"), "num"), (_("SM activity"), "num"), (_("Tensor activity"), "num"),
        (_("Memory in use"), "num"), (_("Energy"), "num"), (_("Idle cards"), "num"),
        (_("Hours with samples"), "num"),
    ]  # fmt: skip


def pool_row(pool: Pool) -> list[str]:
    use = pool.use
    return [
        pool.team or _("no team"), accelerator_label(pool.accelerator) or _("not told"),
        str(Ownership(pool.ownership).label),
        number_format(use.cards), percent(use.utilization), percent(use.sm), percent(use.tensor),
        percent(use.memory), energy(use), number_format(pool.idle), percent(use.covered),
    ]  # fmt: skip


def queue_columns() -> list[tuple[str, str]]:
    return [
        (_("Team"), ""), (_("Jobs"), "num"), (_("Mean"), "num"), (_("Median"), "num"), (_("p90"), "num"),
        (_("Longest"), "num"), (_("Interrupted"), "num"), (_("MFU"), "num"),
    ]  # fmt: skip


def queue_row(team: str, queue: Queue) -> list[str]:
    return [
        team, number_format(queue.jobs), span(queue.mean), span(queue.p50), span(queue.p90),
        span(queue.longest), number_format(queue.interrupted), percent(queue.mfu),
    ]  # fmt: skip
