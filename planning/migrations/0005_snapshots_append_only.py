from django.db import migrations

from core.append_only import AppendOnly


class Migration(migrations.Migration):
    dependencies = [("planning", "0004_reviews")]
    operations = [AppendOnly("planning_reviewsnapshot")]
