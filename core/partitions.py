"""Tables in monthly partitions on PostgreSQL; a plain table elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import connection, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

# Single precision is plenty for a share or a power, and halves the table.
_TYPES = {
    "DateTimeField": "timestamptz",
    "ForeignKey": "integer",
    "PositiveIntegerField": "integer",
    "FloatField": "real",
}


class CreateMonthly(migrations.CreateModel):
    """Create a model whose table is partitioned by month of `column` on PostgreSQL. Its primary key is composite and
    begins with that column; integers and single-precision figures only."""

    def __init__(self, *args: Any, column: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.column = column

    def deconstruct(self) -> tuple[str, Any, Any]:
        name, args, kwargs = super().deconstruct()
        return name, args, {**kwargs, "column": self.column}

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.name)
        columns = []
        for field in model._meta.local_fields:
            if field.primary_key:
                continue
            null = "" if field.null else " NOT NULL"
            columns.append(f'"{field.column}" {_TYPES[field.get_internal_type()]}{null}')
        key = ", ".join(f'"{name}"' for name in model._meta.pk.columns)
        schema_editor.execute(
            f'CREATE TABLE "{model._meta.db_table}" ({", ".join(columns)}, PRIMARY KEY ({key})) '
            f'PARTITION BY RANGE ("{self.column}")'
        )


def ensure_months(table: str, moments: Iterable[datetime]) -> None:
    """Make the partitions in which `moments` fall, where they are missing. Nothing to do outside PostgreSQL."""
    if connection.vendor != "postgresql":
        return
    months = {(moment.astimezone(UTC).year, moment.astimezone(UTC).month) for moment in moments}
    with connection.cursor() as cursor:
        for year, month in sorted(months):
            name = f"{table}_{year}_{month:02d}"
            cursor.execute("SELECT to_regclass(%s)", [name])
            if cursor.fetchone()[0] is not None:
                continue
            first = f"{year}-{month:02d}-01T00:00:00Z"
            end = f"{year + month // 12}-{month % 12 + 1:02d}-01T00:00:00Z"
            # Two loads at the same time: the second waits for the lock and finds the table there.
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [name])
            cursor.execute(
                f'CREATE TABLE IF NOT EXISTS "{name}" PARTITION OF "{table}" '
                f"FOR VALUES FROM ('{first}') TO ('{end}')"
            )
