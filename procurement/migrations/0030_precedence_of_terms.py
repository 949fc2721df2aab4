from django.db import migrations, models

from core.append_only import AppendOnlyAgain

TABLE = "procurement_clause"
# What the clauses that came with the product ask in their first version; a later version says it itself.
SHIPPED = {
    "burn-in-72h": {"burn_in_permitted": True, "continuous_use_permitted": True},
    "new-parts": {"new_parts_only": True, "authorised_channel": True},
    "doa-window": {"doa_days": 30, "doa_from_delivery": True, "doa_new": True},
    "advance-replacement": {
        "return_days": 15, "advance_replacement": True, "replacement_new": True,
    },
    "warranty-from-acceptance": {"start_trigger": "acceptance"},
    "payment-after-acceptance": {"last_payment": "acceptance"},
    "transferable": {"transferable": True},
    "spare-parts": {"spare_part_years": 5},
}  # fmt: skip


def fill(apps, schema_editor):
    """Shipped clauses get what their words ask; orders that do not bind yet say that clauses hold."""
    db = schema_editor.connection.alias
    postgresql = schema_editor.connection.vendor == "postgresql"
    if postgresql:
        schema_editor.execute(f"ALTER TABLE {TABLE} DISABLE TRIGGER {TABLE}_append_only")
    else:
        for verb in ("update", "delete"):
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {TABLE}_no_{verb}")
    clause, copied = (apps.get_model("procurement", name) for name in ("Clause", "RfqClause"))
    for code, asks in SHIPPED.items():
        first = {"code": code, "version": 1, "made_by": None}
        clause.objects.using(db).filter(**first).update(asks=asks)
        copied.objects.using(db).filter(
            **{f"clause__{name}": value for name, value in first.items()}
        ).update(asks=asks)
    if postgresql:
        schema_editor.execute(f"ALTER TABLE {TABLE} ENABLE TRIGGER {TABLE}_append_only")
    orders = apps.get_model("procurement", "PurchaseOrder").objects.using(db)
    orders.filter(status="draft").update(precedence="clauses")


class Migration(migrations.Migration):
    dependencies = [("procurement", "0029_rfq_of_a_decision")]

    operations = [
        AppendOnlyAgain(TABLE),
        migrations.AddField(
            model_name="clause",
            name="asks",
            field=models.JSONField(blank=True, default=dict, verbose_name="asks of the warranty"),
        ),
        migrations.AddField(
            model_name="rfqclause",
            name="asks",
            field=models.JSONField(blank=True, default=dict, verbose_name="asks of the warranty"),
        ),
        migrations.AddField(
            model_name="purchaseorder",
            name="precedence",
            field=models.CharField(
                blank=True,
                choices=[("clauses", "The clauses hold"), ("quote", "The quote holds")],
                default="",
                max_length=8,
                verbose_name="where quote and clauses differ",
            ),
            preserve_default=False,
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        AppendOnlyAgain(TABLE),
    ]
