from django.db import migrations

from core.append_only import AppendOnly


class Migration(migrations.Migration):
    """Revisions and prices are added, never changed: the database refuses anything else."""

    dependencies = [("catalog", "0001_initial")]
    operations = [
        AppendOnly("catalog_acceleratorspec"),
        AppendOnly("catalog_architecturespec"),
        AppendOnly("catalog_platformspec"),
        AppendOnly("catalog_tcodefaultvalue"),
        AppendOnly("catalog_offerprice"),
        AppendOnly("catalog_pricerecord"),
    ]
