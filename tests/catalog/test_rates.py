"""Exchange rates are dated rows that finance adds."""

from datetime import date
from decimal import Decimal

import pytest

from catalog.services.rates import add_rate
from core.errors import InputError, NotPermitted
from core.exchange import rate_on
from core.models import AuditEntry, ExchangeRate
from core.roles import Role


@pytest.fixture(autouse=True)
def _on_the_last_of_november(time_machine):
    time_machine.move_to("2026-11-30T04:00:00Z", tick=False)


def rate(by, **changes):
    values = {
        "base": "USD", "quote": "CNY", "rate": Decimal("7.10"), "as_of": date(2026, 11, 30), "source": "PBoC",
    }  # fmt: skip
    return add_rate(**(values | changes), by=by)


def test_a_new_rate_holds_from_its_day_and_older_days_keep_theirs(loaded, finance):
    before = rate_on("USD", "CNY", date(2026, 11, 29))
    rate(finance)

    assert rate_on("USD", "CNY", date(2026, 11, 30)).rate == Decimal("7.10")
    assert rate_on("USD", "CNY", date(2026, 11, 29)) == before
    assert AuditEntry.objects.get(action="exchange_rate.added").actor == finance


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"rate": Decimal(0)}, "rate"),
        ({"rate": Decimal("-1")}, "rate"),
        ({"rate": Decimal("NaN")}, "rate"),
        ({"rate": Decimal("0.123456789")}, "rate"),
        ({"quote": "USD"}, "quote"),
        ({"base": "XXX"}, "base"),
        ({"as_of": date(2026, 12, 1)}, "as_of"),
        ({"source": " "}, "source"),
    ],
)
def test_what_cannot_be_is_refused_by_name(loaded, finance, changes, field):
    count = ExchangeRate.objects.count()
    with pytest.raises(InputError) as error:
        rate(finance, **changes)
    assert error.value.field == field
    assert ExchangeRate.objects.count() == count


def test_a_day_has_one_rate_in_either_direction(loaded, finance):
    rate(finance)
    for changes in ({}, {"base": "CNY", "quote": "USD", "rate": Decimal("0.14")}):
        with pytest.raises(InputError, match="never overwritten"):
            rate(finance, **changes)


@pytest.mark.parametrize(
    "role", [Role.REQUESTER, Role.APPROVER, Role.PROCUREMENT, Role.OPERATIONS, Role.AUDITOR]
)
def test_who_may_not_add_a_rate(loaded, make_user, role):
    with pytest.raises(NotPermitted):
        rate(make_user(role))


def test_an_administrator_may(loaded, make_user):
    assert rate(make_user(Role.ADMINISTRATOR)).pk
