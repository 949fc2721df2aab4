from django.db import migrations, models


def rename(apps, schema_editor):
    apps.get_model("procurement", "RfqRequirement").objects.filter(per="node").update(per="server")


def back(apps, schema_editor):
    apps.get_model("procurement", "RfqRequirement").objects.filter(per="server").update(per="node")


class Migration(migrations.Migration):
    dependencies = [
        ("procurement", "0031_registrations"),
    ]

    operations = [
        migrations.AlterField(
            model_name="rfqrequirement",
            name="per",
            field=models.CharField(
                choices=[("whole", "in all"), ("server", "of a server"), ("card", "of a card")],
                default="whole",
                max_length=6,
                verbose_name="figure of",
            ),
        ),
        migrations.RunPython(rename, back),
    ]
