from django.db import migrations

from core.append_only import AppendOnly, FrozenColumns


class Migration(migrations.Migration):
    dependencies = [("planning", "0006_studies")]

    operations = [
        AppendOnly("planning_marketsnapshot"),
        FrozenColumns(
            "planning_study",
            "result",
            [
                "result",
                "result_hash",
                "inputs",
                "inputs_hash",
                "snapshot_id",
                "seed",
                "constants_version",
            ],
        ),
    ]
