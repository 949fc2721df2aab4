"""A loaded catalogue, and people who may and may not touch it."""

import pytest

from catalog.services.loading import load_reference
from core.roles import Role

WRITERS = [Role.PROCUREMENT, Role.OPERATIONS, Role.ADMINISTRATOR]


@pytest.fixture
def loaded(organisation):
    return load_reference()


@pytest.fixture
def buyer(make_user):
    return make_user(Role.PROCUREMENT)


@pytest.fixture
def finance(make_user):
    return make_user(Role.FINANCE)


@pytest.fixture
def reader(make_user, team):
    return make_user(Role.REQUESTER, team=team)
