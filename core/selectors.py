"""Reads of the kernel's rows, within what the reader may see."""

from django.db.models import Q, QuerySet

from core.models import AuditEntry, User
from core.roles import Role, sees_all_teams, team_ids

AUDIT_READERS = (Role.AUDITOR, Role.ADMINISTRATOR, Role.FINANCE)


def visible_audit(user: User) -> "QuerySet[AuditEntry]":
    """Entries of the reader's own teams and acts; all of them for auditor, finance and administrator."""
    entries = AuditEntry.objects.select_related("actor", "on_behalf_of", "team")
    if sees_all_teams(user, AUDIT_READERS):
        return entries
    return entries.filter(Q(team__in=team_ids(user)) | Q(actor=user))
