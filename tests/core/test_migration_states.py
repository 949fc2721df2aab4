"""Historical models drawn anew: what changed and what holds it, nothing else, and never a class that is gone."""

from __future__ import annotations

import pytest
from django.core.management import load_command_class
from django.core.management.commands import migrate
from django.db import models
from django.db.migrations.operations import (
    AddConstraint,
    AddField,
    AlterField,
    CreateModel,
    DeleteModel,
    RemoveField,
    RenameModel,
)
from django.db.migrations.state import ProjectState

from core.migration_states import LeanMigrationExecutor, LeanProjectState

CASCADE = models.CASCADE


def model(name: str, **fields: models.Field) -> CreateModel:  # type: ignore[type-arg]
    return CreateModel(name, [("id", models.BigAutoField(primary_key=True)), *fields.items()])


BEGINNING = [
    model("Owner"),
    model("Case", owner=models.ForeignKey("x.Owner", CASCADE, related_name="cases")),
    model("Part", case=models.ForeignKey("x.Case", CASCADE), self=models.ForeignKey("self", CASCADE)),
    model("Piece", part=models.OneToOneField("x.Part", CASCADE, related_name="+")),
    model("Label", cases=models.ManyToManyField("x.Case")),
    model("Beside", owner=models.ForeignKey("x.Owner", CASCADE)),
    CreateModel("Kind", [], bases=("x.part",)),
]  # fmt: skip


@pytest.fixture
def state() -> ProjectState:
    """As `migrate` holds it: its classes are drawn already."""
    found = ProjectState()
    for operation in BEGINNING:
        operation.state_forwards("x", found)
    assert found.apps
    found.__class__ = LeanProjectState
    return found


def classes(state: ProjectState) -> dict[str, type[models.Model]]:
    return {m._meta.model_name: m for m in state.apps.get_models(include_auto_created=True)}


def check_whole(state: ProjectState) -> None:
    """Every relation leads to the class that stands, and each class has the fields that the state says."""
    now = classes(state)
    for found in now.values():
        for field in found._meta.get_fields(include_hidden=True):
            if field.is_relation:
                assert now[field.related_model._meta.model_name] is field.related_model, field
        for base in found.__bases__:
            assert base is models.Model or now[base._meta.model_name] is base
    fresh = ProjectState(models=state.models, real_apps=state.real_apps)
    assert {name: _shape(m) for name, m in now.items()} == {
        name: _shape(m) for name, m in classes(fresh).items()
    }


def _shape(found: type[models.Model]) -> list[tuple[str, str]]:
    return sorted((f.name, type(f).__name__) for f in found._meta.get_fields(include_hidden=True))


def test_what_it_points_at_and_what_stands_beside_stays(state):
    before = classes(state)
    AddField("case", "note", models.TextField(default="")).state_forwards("x", state)
    anew = {name for name, found in classes(state).items() if before[name] is not found}
    assert anew == {"case", "part", "piece", "label", "label_cases", "kind"}
    check_whole(state)


@pytest.mark.parametrize(
    "operation",
    [
        AddField("owner", "name", models.TextField(default="")),
        AddField("beside", "case", models.ForeignKey("x.Case", CASCADE)),
        AddField("case", "labels", models.ManyToManyField("x.Label", related_name="+")),
        AlterField("owner", "id", models.CharField(max_length=9, primary_key=True)),
        AlterField("case", "owner", models.ForeignKey("x.Beside", CASCADE)),
        RemoveField("label", "cases"),
        RemoveField("case", "owner"),
        RenameModel("Case", "Matter"),
        DeleteModel("Beside"),
        model("Late", piece=models.ForeignKey("x.Piece", CASCADE)),
        AddConstraint("case", models.UniqueConstraint(fields=["owner"], name="one")),
    ],
    ids=lambda one: (
        f"{type(one).__name__}-{'-'.join(map(str, one.deconstruct()[2].values()))[:24]}"
    ),
)
def test_every_kind_of_change_leaves_a_whole_state(state, operation):
    operation.state_forwards("x", state)
    check_whole(state)


def test_code_of_a_data_migration_sees_models_drawn_wholly_anew(state):
    AddField("case", "note", models.TextField(default="")).state_forwards("x", state)
    kept = classes(state)["beside"]
    state.clear_delayed_apps_cache()  # what RunPython does first
    assert classes(state)["beside"] is not kept


def test_the_products_own_command_migrates_so():
    load_command_class("core", "migrate")
    assert migrate.MigrationExecutor is LeanMigrationExecutor
