from django.db import migrations


def drop_retired(apps, schema_editor):
    """Before this, an order had only milestones that stand: on the way back, those put aside go, with what void
    invoices claimed of them. The void invoices stay, with their totals. Apart from the change of the table, because
    PostgreSQL alters none that has rows waiting to be checked."""
    db = schema_editor.connection.alias
    part = apps.get_model("procurement", "InvoicePart")
    milestone = apps.get_model("procurement", "Milestone")
    part.objects.using(db).filter(milestone__retired_at__isnull=False).delete()
    milestone.objects.using(db).filter(retired_at__isnull=False).delete()


class Migration(migrations.Migration):
    dependencies = [("procurement", "0017_retired_milestones")]

    operations = [migrations.RunPython(migrations.RunPython.noop, drop_retired)]
