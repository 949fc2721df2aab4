"""Test data with minimal defaults."""

from __future__ import annotations

import factory

from core.models import Membership, Organisation, Team, User


class OrganisationFactory(factory.django.DjangoModelFactory[Organisation]):
    class Meta:
        model = Organisation

    name = "Quanta Cloud"
    currency = "CNY"
    time_zone = "Asia/Shanghai"
    fiscal_start_month = 1


class TeamFactory(factory.django.DjangoModelFactory[Team]):
    class Meta:
        model = Team

    name = factory.Sequence(lambda n: f"Team {n}")
    slug = factory.Sequence(lambda n: f"team-{n}")


class UserFactory(factory.django.DjangoModelFactory[User]):
    class Meta:
        model = User

    email = factory.Sequence(lambda n: f"person{n}@example.com")
    name = factory.Sequence(lambda n: f"Person {n}")
    password = factory.django.Password("correct horse battery")


class MembershipFactory(factory.django.DjangoModelFactory[Membership]):
    class Meta:
        model = Membership

    user = factory.SubFactory(UserFactory)
    team = factory.SubFactory(TeamFactory)
    role = "requester"
