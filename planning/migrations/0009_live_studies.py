from django.db import migrations, models

from core.append_only import FrozenColumns, ThawColumns

GUARD = (
    "planning_study",
    "result",
    ["result", "result_hash", "inputs", "inputs_hash", "snapshot_id", "seed", "constants_version"],
)


class Migration(migrations.Migration):
    dependencies = [("planning", "0008_study_briefs")]

    operations = [
        ThawColumns(*GUARD),
        migrations.RemoveConstraint(model_name="study", name="study_once_per_inputs"),
        migrations.AddField(
            model_name="study", name="preview", field=models.JSONField(blank=True, null=True)
        ),
        migrations.AddConstraint(
            model_name="study",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("status__in", ("draft", "running", "ready", "published", "failed"))
                ),
                fields=("revision", "inputs_hash"),
                name="study_once_per_inputs",
            ),
        ),
        FrozenColumns(*GUARD),
    ]
