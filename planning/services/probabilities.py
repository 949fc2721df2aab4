"""What is assumed of each stage before history tells; edited by finance."""

from __future__ import annotations

from decimal import Decimal

from django.db import transaction

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from core.stale import check_version
from core.transitions import lock
from planning.models.probabilities import DEFAULTS, StagePrior
from planning.services.ledger import require_keeper

MOST = 100_000


@transaction.atomic
def set_prior(
    *, stage: str, share: Decimal, weight: int, by: User, version: int | None = None
) -> StagePrior:
    """Assume `share` for a stage, as much as `weight` decided requests would say. `version` is the one that was seen, 0
    where the assumption was never changed. Raises NotPermitted, StaleData or InputError."""
    require_keeper(by)
    if stage not in DEFAULTS:
        raise InputError(
            "stage", msg("%(value)s is no stage with a probability", value=stage), value=stage,
            limit=", ".join(DEFAULTS),
        )  # fmt: skip
    if not share.is_finite() or not 0 <= share <= 1:
        raise _outside("share", share, "0 … 1")
    if not 1 <= weight <= MOST:
        raise _outside("weight", weight, f"1 … {MOST}")
    usual = DEFAULTS[stage]
    made, _created = StagePrior.objects.get_or_create(
        stage=stage, defaults={"share": usual[0], "weight": usual[1]}
    )
    row = lock(StagePrior.objects.all(), made.pk)
    check_version(row, version)
    before = (row.share, row.weight)
    row.version += 1
    row.share, row.weight = share.quantize(Decimal("0.001")), weight
    row.save()
    record(
        "stage_prior.changed", on=row, by=by,
        changes={"share": [str(before[0]), str(row.share)], "weight": [str(before[1]), str(weight)]},
    )  # fmt: skip
    return row


def _outside(field: str, value: object, limit: str) -> InputError:
    return InputError(
        field,
        msg("%(field)s is %(value)s; it must be within %(limit)s", field=field, value=str(value), limit=limit),
        value=value, limit=limit,
    )  # fmt: skip
