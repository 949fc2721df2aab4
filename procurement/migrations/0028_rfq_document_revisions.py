from datetime import datetime

from django.db import migrations, models


def fill(apps, schema_editor):
    """What was drawn so far was drawn at the issue: with the deadline before the first extension."""
    db = schema_editor.connection.alias
    entries = apps.get_model("core", "AuditEntry").objects.using(db)
    extended = {}
    for entry in entries.filter(action="rfq.extended", object_type="procurement.rfq").order_by(
        "pk"
    ):
        if told := entry.data.get("deadline"):
            extended.setdefault(entry.object_id, datetime.fromisoformat(told[0]))
    documents = apps.get_model("procurement", "RfqDocument").objects.using(db)
    for row in documents.select_related("rfq"):
        row.deadline = extended.get(str(row.rfq_id), row.rfq.deadline)
        row.save(update_fields=["deadline"])


def keep_newest(apps, schema_editor):
    """Before this, there was one document for each language: the newest stays."""
    db = schema_editor.connection.alias
    documents = apps.get_model("procurement", "RfqDocument").objects.using(db)
    seen = set()
    for row in documents.order_by("-revision"):
        if (row.rfq_id, row.language) in seen:
            row.delete()
        seen.add((row.rfq_id, row.language))


class Migration(migrations.Migration):
    dependencies = [("procurement", "0027_contract_checklists")]

    operations = [
        migrations.AlterModelOptions(
            name="rfqdocument",
            options={
                "ordering": ["language", "-revision"],
                "verbose_name": "document of an RFQ",
                "verbose_name_plural": "documents of an RFQ",
            },
        ),
        migrations.RemoveConstraint(model_name="rfqdocument", name="rfq_document_once"),
        migrations.AddField(
            model_name="rfqdocument",
            name="revision",
            field=models.PositiveSmallIntegerField(default=1),
        ),
        migrations.AddField(
            model_name="rfqdocument", name="deadline", field=models.DateTimeField(null=True)
        ),
        migrations.RunPython(fill, keep_newest),
        migrations.AlterField(
            model_name="rfqdocument", name="deadline", field=models.DateTimeField()
        ),
        migrations.AddConstraint(
            model_name="rfqdocument",
            constraint=models.UniqueConstraint(
                fields=("rfq", "language", "revision"), name="rfq_document_revision"
            ),
        ),
    ]
