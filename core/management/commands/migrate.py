"""Django's own command with the product's executor (core/migration_states.py)."""

from __future__ import annotations

from django.core.management.commands import migrate

from core.migration_states import LeanMigrationExecutor

migrate.MigrationExecutor = LeanMigrationExecutor  # type: ignore[attr-defined]


class Command(migrate.Command):
    pass
