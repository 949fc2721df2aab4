"""The organisation's stage, which advice in studies follows."""

from __future__ import annotations

from django.db import transaction

from core import transitions
from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import Organisation, Stage, User
from core.organisation import organisation
from core.policies import require
from planning import policies


@transaction.atomic
def set_stage(*, stage: str, by: User) -> Organisation:
    """Say what kind of asker the organisation is; empty: no advice by stage. Raises NotPermitted or InputError."""
    require(policies.can_set_stage(by))
    if stage and stage not in Stage.values:
        raise InputError(
            "stage",
            msg("%(field)s: %(value)s is none of %(limit)s", field="stage", value=stage, limit=", ".join(Stage.values)),
            value=stage,
            limit=", ".join(Stage.values),
        )  # fmt: skip
    found = transitions.lock(Organisation.objects.all(), organisation().pk)
    before = found.stage
    found.stage = stage
    found.save(update_fields=["stage"])
    record("organisation.stage_set", on=found, by=by, changes={"stage": [before, stage]})
    return found
