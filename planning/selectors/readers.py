"""Who may see a request, the other way round: all the people, not one person's requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django.db.models import Q, QuerySet

from core.models import Team, User
from core.organisation import today
from core.roles import SEES_ALL
from planning.models.delegations import Delegation
from planning.models.requests import DECIDING_ROLES


def readers(team: Team) -> QuerySet[User]:
    """Active people who may see the requests of `team`: the same rule as models.requests.visible_teams."""
    central = Q(memberships__team=None, memberships__role__in=SEES_ALL)
    inside = Q(memberships__team=team)
    deciding = Q(memberships__role__in=DECIDING_ROLES) & (
        Q(memberships__team=None) | Q(memberships__team=team)
    )
    absent = User.objects.filter(deciding).values("pk")
    standing_in = Delegation.objects.active_on(today()).filter(principal__in=absent)
    return (
        User.objects.filter(
            central | inside | Q(pk__in=standing_in.values("delegate")), is_active=True
        )
        .distinct()
        .order_by("name", "pk")
    )


def handles(people: Iterable[User]) -> dict[str, User]:
    """Handle → person: the address, and what stands before its @ where that is one person's."""
    people = list(people)
    short = Counter(person.email.partition("@")[0].lower() for person in people)
    found = {}
    for person in people:
        email = person.email.lower()
        local = email.partition("@")[0]
        found[email] = person
        if short[local] == 1:
            found[local] = person
    return found


def handle_names(people: Iterable[User]) -> list[tuple[str, User]]:
    """(shortest handle, person) for a list to pick from."""
    shortest: dict[int, tuple[str, User]] = {}
    for name, person in handles(people).items():
        if person.pk not in shortest or len(name) < len(shortest[person.pk][0]):
            shortest[person.pk] = (name, person)
    return list(shortest.values())
