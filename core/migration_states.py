"""Migrations forward without drawing half of the models again for each operation.

Django renders a model's historical class anew whenever an operation changes it, and with it everything related in
either direction: through the user and the organisation that is most of the product, some hundred operations long. Only
those that point at the changed model, directly or over others, hold its old class; those that it points at do not.
"""

from __future__ import annotations

from typing import Any

from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.state import ProjectState
from django.db.models import Model

Key = tuple[str, str]


def _holders(model: type[Model]) -> list[type[Model]]:
    """The models that hold `model`'s class: by a relation (its own tables of many-to-many, too) or as a base."""
    # Asking `_meta` of the old class also keeps its relations there, for operations that read them from it afterwards.
    found = [
        field.related_model
        for field in model._meta.get_fields(include_parents=True, include_hidden=True)
        if field.is_relation and field.auto_created and not field.concrete
    ]
    return [
        one for one in [*found, *model.__subclasses__()]
        if isinstance(one, type) and issubclass(one, Model)
    ]  # fmt: skip


class LeanProjectState(ProjectState):
    """A state that renders anew what changed and what holds it; a data migration gets a wholly fresh one."""

    def _find_reload_model(self, app_label: str, model_name: str, delay: bool = False) -> set[Key]:
        self.is_delayed = True  # RunPython renders all of it before its code sees models
        model_name = model_name.lower()
        keys: set[Key] = {(app_label, model_name)}
        try:
            todo: list[type[Model]] = [self.apps.get_model(app_label, model_name)]
        except LookupError:
            return keys
        while todo:
            for holder in _holders(todo.pop()):
                key = holder._meta.app_label, str(holder._meta.model_name)
                if key not in keys:
                    keys.add(key)
                    todo.append(holder)
        return keys


class LeanMigrationExecutor(MigrationExecutor):
    """Forward plans only: going back keeps several states at once and stays as Django does it."""

    def _migrate_all_forwards(self, state: ProjectState, *args: Any, **options: Any) -> Any:
        state.__class__ = LeanProjectState
        return super()._migrate_all_forwards(state, *args, **options)  # type: ignore[misc]
