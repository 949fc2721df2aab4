"""Day, rate and reference stand on each payment, which every paid invoice has since 0011: nothing is lost."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("procurement", "0019_quote_lines_say_tax_and_serials"),
    ]

    operations = [
        migrations.RemoveField(
            model_name="invoice",
            name="paid_on",
        ),
        migrations.RemoveField(
            model_name="invoice",
            name="paid_rate",
        ),
        migrations.RemoveField(
            model_name="invoice",
            name="payment_reference",
        ),
    ]
