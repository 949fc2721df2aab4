from django.db import migrations

from core.append_only import AppendOnly, FrozenOnce


class Migration(migrations.Migration):
    dependencies = [("planning", "0001_requests_budgets_approvals")]

    operations = [
        AppendOnly("planning_ledgerentry"),
        AppendOnly("planning_vote"),
        FrozenOnce("planning_requestrevision", "submitted_at"),
    ]
