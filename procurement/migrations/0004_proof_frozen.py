"""Orders pin what acceptance is judged by; what a signature or an ended run rests on is frozen by the database."""

from django.db import migrations, models

from core.append_only import FrozenColumns, FrozenWith

EVIDENCE = [
    "delivery_id", "node_id", "file_id", "sha256", "state", "format", "verdict", "result",
    "policy_version", "reader_version", "read_at", "locked_at", "created_by_id", "created_at",
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("procurement", "0003_evidence_checks")]

    operations = [
        migrations.AddField(
            model_name="purchaseorder",
            name="evidence_policy",
            field=models.JSONField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="purchaseorder",
            name="burn_in_hours",
            field=models.PositiveSmallIntegerField(
                editable=False, null=True, verbose_name="burn-in (hours)"
            ),
        ),
        FrozenColumns("procurement_evidencefile", "locked_at", EVIDENCE),
        FrozenWith("procurement_unitverdict", "procurement_evidencefile", "evidence_id", "locked_at"),
        FrozenColumns(
            "procurement_burninrun",
            "ended_at",
            ["asset_id", "delivery_id", "template_id", "attempt", "required_seconds",
             "covered_seconds", "started_at", "clock_from", "ended_at"],
        ),
        FrozenWith("procurement_runitem", "procurement_burninrun", "run_id", "ended_at"),
        FrozenColumns(
            "procurement_acceptance",
            "decided_at",
            ["number", "delivery_id", "proposed_by_id", "content_hash", "evidence_index",
             "decided_by_id", "decided_at"],
        ),
        FrozenWith("procurement_acceptanceunit", "procurement_acceptance", "acceptance_id", "decided_at"),
    ]  # fmt: skip
