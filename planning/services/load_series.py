"""The hourly load of a draft, from a file: part of its content, so a revision and a study freeze it with the rest."""

from __future__ import annotations

from django.db import transaction

from core.imports import check_size, decode
from core.models import User
from planning import policies
from planning.models import CapacityRequest
from planning.services.moves import lock_request
from planning.services.requests import update_draft
from planning.study.load_series import FIELD, parse_load

MAX_BYTES = 2 * 1024 * 1024


@transaction.atomic
def set_load_series(
    *,
    request_id: int,
    content: bytes,
    name: str,
    zone: str,
    by: User,
    encoding: str = "",
    version: int | None = None,
) -> CapacityRequest:
    """Read a CSV of hours into a draft. `zone`: of times without an offset.

    Raises NotPermitted, InvalidTransition, StaleData, EncodingNeeded, InputError or WorkloadErrors.
    """
    request = lock_request(request_id)
    policies.require_action(by, "edit", request)
    check_size(len(content), MAX_BYTES, field=FIELD)
    text, _encoding = decode(content, encoding)
    series = parse_load(text, zone=zone or None, source=name[:120])
    workload = {**request.current.workload, FIELD: series}
    return update_draft(request_id=request_id, by=by, version=version, workload=workload)


@transaction.atomic
def remove_load_series(*, request_id: int, by: User, version: int | None = None) -> CapacityRequest:
    """Go back to the usual week and the peak. Raises NotPermitted, InvalidTransition, StaleData or InputError."""
    request = lock_request(request_id)
    policies.require_action(by, "edit", request)
    workload = {name: value for name, value in request.current.workload.items() if name != FIELD}
    return update_draft(request_id=request_id, by=by, version=version, workload=workload)
