"""Whether the model that a tool printed is the one that was ordered, whatever tool it was."""

from __future__ import annotations

from typing import Any

from catalog.reference import accelerator_slug, accelerators, device_identity, fold
from procurement.evidence.policy import default_policy

MODEL_DIFFERS = "model_differs"  # code of the reason on a unit's verdict
IDENTITY_ITEM = "A2.2"  # of the checklist: model and identity as ordered


def ordered_name(slug: str) -> str:
    """The ordered card as people call it."""
    known = accelerator_slug(slug)
    return accelerators()[known]["name"] if known else slug


def expected_identity(slug: str) -> dict[str, Any]:
    """What a card of this model shows of itself, as `order_context` of the readers; empty where it is not known.

    Memory is no part of it: drivers round it differently, so the readers compare it with their own reference.
    """
    known = device_identity(accelerator_slug(slug) or slug)
    if known is None:
        return {}
    return {
        "expected_device_id": known["device_id"],
        "expected_power_default_w": known["power_default_w"],
        "expected_power_max_w": known["power_max_w"],
        "expected_max_sm_mhz": known["max_sm_mhz"],
        "expected_mem_clock_mhz": known["max_memory_mhz"],
        "golden_memory_mib": known["memory_mib"],
    }


def contradicts(shown: str | None, ordered_slug: str) -> bool:
    """Whether `shown`, as a driver prints it, is known to be another card than the ordered one.

    A name that is not known, or that is only a shorter form of the ordered one, contradicts nothing.
    """
    if not shown or not ordered_slug:
        return False
    here, wanted = accelerator_slug(shown), accelerator_slug(ordered_slug)
    if here and wanted:
        short = fold(shown)
        names = (wanted, accelerators()[wanted]["name"])
        return here != wanted and not any(fold(name).startswith(short) for name in names)
    policy = default_policy()
    one, other = policy.model(shown), policy.model(ordered_slug)
    return one is not None and other is not None and one.name != other.name
