"""Going back over a migration with the rows that it made possible."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from procurement.services import invoices, orders
from tests.procurement import builders as b
from tests.procurement.services.test_milestones import TERMS, bill, ordered

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="SQLite cannot be emptied after: its rows are frozen"
    ),
]


@pytest.fixture
def back():
    """Go back to a migration of procurement; at the end all stand again."""

    def go(name):
        call_command("migrate", "procurement", name, verbosity=0)
        return MigrationExecutor(connection).loader.project_state([("procurement", name)]).apps

    yield go
    call_command("migrate", "procurement", verbosity=0)


def test_retired_milestones_leave_with_their_column_and_standing_ones_stay(back):
    s = b.shop()
    order = ordered(s)
    void = bill(s, order, {1: "678000"})
    invoices.void_invoice(invoice_id=void.pk, reason="too early", by=s.finance)
    revision = orders.propose_amendment(
        order_id=order.pk, payments=list(reversed(TERMS)), reason="other", by=s.procurement
    )
    orders.approve_amendment(revision_id=revision.pk, by=s.cto)
    assert order.milestones.count() == len(TERMS) + 1

    then = back("0016_policy_proposals_with_their_ground")

    rows = then.get_model("procurement", "Milestone").objects.filter(order=order.pk)
    assert list(rows.order_by("position").values_list("event", flat=True)) == [
        term["event"] for term in reversed(TERMS)
    ]
    kept = then.get_model("procurement", "Invoice").objects.get(pk=void.pk)
    assert (kept.status, kept.parts.count()) == ("void", 0)
