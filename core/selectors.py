"""Reads of the kernel's rows, within what the reader may see."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from core.models import AuditEntry, Job, User
from core.roles import Role, has_role, sees_all_teams, team_ids

AUDIT_READERS = (Role.AUDITOR, Role.ADMINISTRATOR, Role.FINANCE)


def visible_audit(user: User) -> QuerySet[AuditEntry]:
    """Entries of the reader's own teams and acts; all of them for auditor, finance and administrator."""
    entries = AuditEntry.objects.select_related("actor", "on_behalf_of", "team")
    if sees_all_teams(user, AUDIT_READERS):
        return entries
    return entries.filter(Q(team__in=team_ids(user)) | Q(actor=user))


def filtered_audit(
    entries: QuerySet[AuditEntry],
    *,
    text: str = "",
    action: str = "",
    who: str = "",
    since: date | None = None,
    until: date | None = None,
) -> QuerySet[AuditEntry]:
    """Entries about an object, of an action prefix, by a person, from `since` to the end of `until` (reader's zone)."""
    if text:
        entries = entries.filter(
            Q(object_label__icontains=text) | Q(object_id=text) | Q(object_type=text.lower())
        )
    if action:
        entries = entries.filter(action__startswith=action)
    if who:
        entries = entries.filter(Q(actor__name__icontains=who) | Q(actor__email__icontains=who))
    zone = timezone.get_current_timezone()
    if since:
        entries = entries.filter(at__gte=datetime.combine(since, time(), zone))
    if until:
        entries = entries.filter(at__lt=datetime.combine(until + timedelta(days=1), time(), zone))
    return entries


def visible_jobs(user: User) -> QuerySet[Job]:
    """The reader's own jobs; everyone's for operators. The same rule as core.policies.can_see_job."""
    rows = Job.objects.select_related("owner")
    if has_role(user, Role.OPERATIONS, Role.ADMINISTRATOR):
        return rows
    return rows.filter(owner=user)
