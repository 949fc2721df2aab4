import ast
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from core.audit import gathered, record, trail
from core.labels import ACTIONS
from core.models import AppendOnlyError, AuditEntry

pytestmark = pytest.mark.django_db


def test_an_entry_cannot_be_changed_or_deleted_by_any_path(team, make_user):
    entry = record("team.renamed", on=team, by=make_user(), reason="merger")

    with pytest.raises(AppendOnlyError):
        entry.save()
    with pytest.raises(AppendOnlyError):
        entry.delete()
    with pytest.raises(AppendOnlyError):
        AuditEntry.objects.all().delete()
    with pytest.raises(AppendOnlyError):
        AuditEntry.objects.update(reason="other")
    for statement in ("UPDATE core_auditentry SET reason = 'x'", "DELETE FROM core_auditentry"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert trail(team).get().reason == "merger"


def test_entries_gathered_are_written_together_in_order_or_not_at_all(team, make_user):
    by = make_user()
    with gathered():
        record("team.renamed", on=team, by=by, reason="one")
        with gathered():
            record("team.renamed", on=team, by=by, reason="two")
        assert not trail(team).exists()
    assert [entry.reason for entry in trail(team)] == ["two", "one"]

    def fails():
        with gathered():
            record("team.renamed", on=team, by=by, reason="three")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    record("team.renamed", on=team, by=by, reason="four")
    assert [entry.reason for entry in trail(team)] == ["four", "two", "one"]


ACTION = re.compile(r"[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*")


def actions_in(node):
    return {
        found.value
        for found in ast.walk(node)
        if isinstance(found, ast.Constant)
        and isinstance(found.value, str)
        and ACTION.fullmatch(found.value)
    }


def test_every_action_that_the_code_records_has_words():
    recorded, said, told = set(), set(), set()
    folders = [settings.BASE_DIR / app for app in ("core", "catalog", "planning", "procurement")]
    for path in (path for folder in folders for path in Path(folder).rglob("services/*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said |= actions_in(tree)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name == "record" and call.args:
                recorded |= actions_in(call.args[0])
            if name in ("notify", "tell", "_tell"):
                told |= {found for argument in call.args for found in actions_in(argument)}
            for keyword in call.keywords:
                if keyword.arg == "action":
                    recorded |= actions_in(keyword.value)
    nouns = {action.split(".")[0] for action in recorded}
    assert len(nouns) > 20
    # an action may also reach `record` through a helper's argument: text with the noun of an action counts, but for
    # the events of notices
    actions = recorded | {text for text in said - told if text.split(".")[0] in nouns}
    assert sorted(actions - set(ACTIONS)) == []


def test_the_trail_names_a_thing_in_the_same_words_whoever_acts(organisation, team, make_user):
    from django.utils import translation

    from core.audit import neutral_label
    from planning.services.budget_changes import open_budget

    budget = open_budget(
        team_id=team.pk, quarter="2027Q1", kind="purchase", currency="CNY", by=make_user("finance")
    )
    with translation.override("zh-hans"):
        assert neutral_label(budget) != str(budget)
        entry = record("budget.opened", on=budget, by=None)
    assert entry.object_label == neutral_label(budget) == str(budget)
