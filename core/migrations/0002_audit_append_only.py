from django.db import migrations

from core.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]
    operations = [AppendOnly("core_auditentry")]
