"""What the purchasing policy asks of those who change it."""

from __future__ import annotations

from core.models import Membership
from core.roles import Role
from planning.models import ApprovalPolicy
from planning.models.approvals import Preset


def needs_second() -> bool:
    """Whether loosening takes a second administrator: in a company and a regulated firm; under own rules when there is
    one; not in a small team, nor before approval rules were chosen."""
    in_force = ApprovalPolicy.objects.filter(active=True).first()
    if in_force is None or in_force.preset == Preset.SMALL_TEAM:
        return False
    if in_force.preset == Preset.CUSTOM:
        people = Membership.objects.filter(
            role=Role.ADMINISTRATOR, team=None, user__is_active=True
        ).values("user")
        return people.distinct().count() > 1
    return True
