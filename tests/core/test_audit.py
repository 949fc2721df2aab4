import pytest
from django.db import DatabaseError, connection, transaction

from core.audit import record, trail
from core.models import AppendOnlyError, AuditEntry

pytestmark = pytest.mark.django_db


def test_an_entry_cannot_be_changed_or_deleted_by_any_path(team, make_user):
    entry = record("team.renamed", on=team, by=make_user(), reason="merger")

    with pytest.raises(AppendOnlyError):
        entry.save()
    with pytest.raises(AppendOnlyError):
        entry.delete()
    with pytest.raises(AppendOnlyError):
        AuditEntry.objects.all().delete()
    with pytest.raises(AppendOnlyError):
        AuditEntry.objects.update(reason="other")
    for statement in ("UPDATE core_auditentry SET reason = 'x'", "DELETE FROM core_auditentry"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert trail(team).get().reason == "merger"
