"""The same step on several runs of a delivery at once: all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction

from core.errors import InputError
from core.messages import msg
from core.models import User
from procurement.models import BurnInRun
from procurement.services.burn_in import abandon_run, interrupt_run, resume_run
from procurement.services.run_proof import lock_delivery
from procurement.states import BurnInStatus

# Action → (service, states it starts from, whether it asks for a reason)
ACTIONS: dict[str, tuple[Callable[..., BurnInRun], tuple[str, ...], bool]] = {
    "interrupt": (interrupt_run, (BurnInStatus.RUNNING,), True),
    "resume": (resume_run, (BurnInStatus.INTERRUPTED,), False),
    "abandon": (abandon_run, (BurnInStatus.RUNNING, BurnInStatus.INTERRUPTED), True),
}


@transaction.atomic
def step_runs(
    *, delivery_id: int, action: str, by: User, reason: str = "", asset_ids: Sequence[int] = ()
) -> list[BurnInRun]:
    """Interrupt, resume or abandon the open runs of the chosen units (none chosen: all that are in a state for it).

    A power failure stops a whole rack, not one card. Raises InputError for an unknown action, a missing reason, or
    when no run is in a state for it.
    """
    found = ACTIONS.get(action)
    if found is None:
        raise InputError(
            "action",
            msg("%(value)s is not one of %(choices)s", value=action, choices=", ".join(ACTIONS)),
            value=action,
            limit=", ".join(ACTIONS),
        )
    service, states, needs_reason = found
    lock_delivery(delivery_id, action="start_burn_in", by=by)
    runs = BurnInRun.objects.filter(delivery=delivery_id, status__in=states)
    if asset_ids:
        runs = runs.filter(asset__in=asset_ids)
    ids = list(runs.order_by("asset_id").values_list("pk", flat=True))
    if not ids:
        raise InputError("action", msg("No chosen run is in a state for this step"), value=action)
    given: dict[str, Any] = {"reason": reason} if needs_reason else {}
    return [service(run_id=pk, by=by, **given) for pk in ids]
