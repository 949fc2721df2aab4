"""Whether what makes the rules of approving or buying looser takes a second administrator."""

from __future__ import annotations

from core.models import Membership
from core.roles import Role
from planning.models import ApprovalPolicy
from planning.models.approvals import Preset


def needs_second(*, though_alone: bool = False) -> bool:
    """Whether a second administrator must agree: where there are two; not in a small team, nor before approval rules
    were chosen. `though_alone`: in a company and a regulated firm also while there is one, who has to name a second.
    """
    in_force = ApprovalPolicy.objects.filter(active=True).first()
    if in_force is None or in_force.preset == Preset.SMALL_TEAM:
        return False
    if though_alone and in_force.preset != Preset.CUSTOM:
        return True
    people = Membership.objects.filter(
        role=Role.ADMINISTRATOR, team=None, user__is_active=True
    ).values("user")
    return people.distinct().count() > 1
