"""Migration operations: the database itself refuses to change or delete rows, always or from some point on."""

from __future__ import annotations

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class AppendOnly(Operation):
    """Guard `table` with triggers on UPDATE and DELETE. SQLite and PostgreSQL; reversible.

    Run it again after an operation that makes SQLite build the table anew: its triggers went with the old one.
    """

    reversible = True
    reduces_to_sql = True

    def __init__(self, table: str) -> None:
        self.table = table

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return type(self).__name__, [self.table], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """No model state changes."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(
                f"CREATE OR REPLACE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ "
                f"BEGIN RAISE EXCEPTION '{table} is append-only'; END $$"
            )
            schema_editor.execute(
                f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
                f"FOR EACH ROW EXECUTE FUNCTION {table}_append_only()"
            )
        else:
            for verb in ("UPDATE", "DELETE"):
                schema_editor.execute(
                    f"CREATE TRIGGER IF NOT EXISTS {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
                )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP TRIGGER {table}_append_only ON {table}")
            schema_editor.execute(f"DROP FUNCTION {table}_append_only()")
        else:
            for verb in ("update", "delete"):
                schema_editor.execute(f"DROP TRIGGER {table}_no_{verb}")

    def describe(self) -> str:
        return f"Make {self.table} append-only"


class AppendOnlyAgain(AppendOnly):
    """Put the guard of :class:`AppendOnly` back where SQLite built the table anew, forwards and backwards.

    Stands first and last in such a migration: whichever way it runs, the guard is there at its end.
    """

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Keep {self.table} append-only"


class FrozenOnce(Operation):
    """Guard rows of `table` with triggers on UPDATE and DELETE from the moment `column` is set. Reversible."""

    reversible = True
    reduces_to_sql = True

    def __init__(self, table: str, column: str) -> None:
        self.table = table
        self.column = column

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return type(self).__name__, [self.table, self.column], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """No model state changes."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table, column = self.table, self.column
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(
                f"CREATE FUNCTION {table}_frozen() RETURNS trigger LANGUAGE plpgsql AS $$ "
                f"BEGIN RAISE EXCEPTION '{table} row is frozen'; END $$"
            )
            schema_editor.execute(
                f"CREATE TRIGGER {table}_frozen BEFORE UPDATE OR DELETE ON {table} "
                f"FOR EACH ROW WHEN (OLD.{column} IS NOT NULL) EXECUTE FUNCTION {table}_frozen()"
            )
        else:
            for verb in ("UPDATE", "DELETE"):
                schema_editor.execute(
                    f"CREATE TRIGGER {table}_frozen_{verb.lower()} BEFORE {verb} ON {table} "
                    f"WHEN OLD.{column} IS NOT NULL "
                    f"BEGIN SELECT RAISE(ABORT, '{table} row is frozen'); END"
                )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP TRIGGER {table}_frozen ON {table}")
            schema_editor.execute(f"DROP FUNCTION {table}_frozen()")
        else:
            for verb in ("update", "delete"):
                schema_editor.execute(f"DROP TRIGGER {table}_frozen_{verb}")

    def describe(self) -> str:
        return f"Freeze rows of {self.table} once {self.column} is set"


class FrozenColumns(Operation):
    """Guard `columns` of `table` from the moment `once` is set, and such rows from deletion. Reversible."""

    reversible = True
    reduces_to_sql = True

    def __init__(self, table: str, once: str, columns: list[str]) -> None:
        self.table = table
        self.once = once
        self.columns = columns

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return type(self).__name__, [self.table, self.once, self.columns], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """No model state changes."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table, once = self.table, self.once
        postgres = schema_editor.connection.vendor == "postgresql"
        differs = "IS DISTINCT FROM" if postgres else "IS NOT"
        changed = " OR ".join(f"NEW.{name} {differs} OLD.{name}" for name in self.columns)
        conditions = {
            "update": f"OLD.{once} IS NOT NULL AND ({changed})",
            "delete": f"OLD.{once} IS NOT NULL",
        }
        if postgres:
            schema_editor.execute(
                f"CREATE FUNCTION {table}_columns_frozen() RETURNS trigger LANGUAGE plpgsql AS $$ "
                f"BEGIN RAISE EXCEPTION '{table}: these columns are frozen'; END $$"
            )
        for verb, condition in conditions.items():
            name = f"{table}_columns_{verb}"
            if postgres:
                schema_editor.execute(
                    f"CREATE TRIGGER {name} BEFORE {verb.upper()} ON {table} FOR EACH ROW "
                    f"WHEN ({condition}) EXECUTE FUNCTION {table}_columns_frozen()"
                )
            else:
                schema_editor.execute(
                    f"CREATE TRIGGER {name} BEFORE {verb.upper()} ON {table} WHEN {condition} "
                    f"BEGIN SELECT RAISE(ABORT, '{table}: these columns are frozen'); END"
                )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table
        postgres = schema_editor.connection.vendor == "postgresql"
        for verb in ("update", "delete"):
            on = f" ON {table}" if postgres else ""
            schema_editor.execute(f"DROP TRIGGER {table}_columns_{verb}{on}")
        if postgres:
            schema_editor.execute(f"DROP FUNCTION {table}_columns_frozen()")

    def describe(self) -> str:
        return f"Freeze {', '.join(self.columns)} of {self.table} once {self.once} is set"


class ThawColumns(FrozenColumns):
    """Take the guard of :class:`FrozenColumns` away, so that the table may be altered; put it back afterwards."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        super().database_backwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Thaw {', '.join(self.columns)} of {self.table}"


class FrozenWith(Operation):
    """Guard rows of `table` from INSERT, UPDATE and DELETE once `once` is set in the row of `parent` that `key` names.

    Reversible; SQLite and PostgreSQL.
    """

    reversible = True
    reduces_to_sql = True

    def __init__(self, table: str, parent: str, key: str, once: str) -> None:
        self.table = table
        self.parent = parent
        self.key = key
        self.once = once

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return type(self).__name__, [self.table, self.parent, self.key, self.once], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """No model state changes."""

    def _frozen(self, row: str) -> str:
        return (
            f"EXISTS (SELECT 1 FROM {self.parent} WHERE id = {row}.{self.key} "  # noqa: S608 - names of ours
            f"AND {self.once} IS NOT NULL)"
        )

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(
                f"CREATE FUNCTION {table}_with_parent() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                f"IF TG_OP <> 'INSERT' AND {self._frozen('OLD')} THEN RAISE EXCEPTION '{table} row is frozen'; END IF; "
                f"IF TG_OP <> 'DELETE' AND {self._frozen('NEW')} THEN RAISE EXCEPTION '{table} row is frozen'; END IF; "
                f"IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$"
            )
            schema_editor.execute(
                f"CREATE TRIGGER {table}_with_parent BEFORE INSERT OR UPDATE OR DELETE ON {table} "
                f"FOR EACH ROW EXECUTE FUNCTION {table}_with_parent()"
            )
        else:
            for verb, rows in (("INSERT", "NEW"), ("UPDATE", "OLD NEW"), ("DELETE", "OLD")):
                condition = " OR ".join(self._frozen(row) for row in rows.split())
                schema_editor.execute(
                    f"CREATE TRIGGER {table}_with_parent_{verb.lower()} BEFORE {verb} ON {table} "
                    f"WHEN {condition} BEGIN SELECT RAISE(ABORT, '{table} row is frozen'); END"
                )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = self.table
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP TRIGGER {table}_with_parent ON {table}")
            schema_editor.execute(f"DROP FUNCTION {table}_with_parent()")
        else:
            for verb in ("insert", "update", "delete"):
                schema_editor.execute(f"DROP TRIGGER {table}_with_parent_{verb}")

    def describe(self) -> str:
        return f"Freeze rows of {self.table} with their {self.parent}"
