"""A demo organisation: people for every role, a policy, budgets and a first draft, made through the services."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from core.models import Membership, Organisation, Team, User
from core.organisation import today
from core.quarters import Quarter
from core.roles import Role
from planning.services import requests
from planning.services.budget_changes import allot, confirm_change, open_budget
from planning.services.policy_presets import load_policy
from planning.states import ChangeStatus
from planning.workloads import Kind

PASSWORD = "demo-headroom-2026"  # noqa: S105 - of a demo on localhost; production never loads it
TIME_ZONE = "Asia/Singapore"
TEAMS = (("foundation", "Foundation models"), ("search", "Search and ads"))
# e-mail, name, language, ((role, team or None), ...), what the person does
PEOPLE: tuple[tuple[str, str, str, tuple[tuple[Role, str | None], ...], str], ...] = (
    ("lin@demo.example", "Lin Yue 林悦", "", ((Role.REQUESTER, "foundation"),), "asks for compute"),
    (
        "ming@demo.example",
        "Ming Hao 明浩",
        "",
        ((Role.REQUESTER, "search"),),
        "asks, in another team",
    ),
    (
        "chen@demo.example",
        "Chen Jing 陈静",
        "",
        ((Role.APPROVER, None),),
        "CTO: approves requests and awards, signs acceptances",
    ),
    (
        "he@demo.example",
        "He Ping 何平",
        "",
        ((Role.FINANCE, None),),
        "finance: budgets and invoices",
    ),
    ("wu@demo.example", "Wu Tong 吴桐", "", ((Role.PROCUREMENT, None),), "buys: RFQ, award, order"),
    ("zhao@demo.example", "Zhao Rui 赵睿", "", ((Role.OPERATIONS, None),), "receives and burns in"),
    (
        "gao@demo.example",
        "Gao Lan 高岚",
        "",
        ((Role.OPERATIONS, None),),
        "second operator: proposes acceptance",
    ),
    ("sun@demo.example", "Sun Wei 孙薇", "", ((Role.AUDITOR, None),), "reads everything"),
    (
        "admin@demo.example",
        "Admin 管理员",
        "",
        ((Role.ADMINISTRATOR, None),),
        "people and policies",
    ),
)
BUDGETS = (
    ("foundation", "purchase", Decimal(24_000_000)),
    ("foundation", "cloud", Decimal(6_000_000)),
    ("search", "purchase", Decimal(3_000_000)),
    ("search", "cloud", Decimal(4_000_000)),
)


class Command(BaseCommand):
    help = "Load a demo organisation into an empty installation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--if-empty", action="store_true", help="do nothing when one exists")
        parser.add_argument("--log-ins", action="store_true", help="only print the demo log-ins")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["log_ins"]:
            self._print()
            return
        if Organisation.objects.exists():
            if options["if_empty"]:
                return
            raise CommandError(
                "An organisation exists already; the demo is only for an empty installation."
            )
        load()

    def _print(self) -> None:
        known = set(User.objects.values_list("email", flat=True))
        shown = [row for row in PEOPLE if row[0] in known]
        if not shown:
            return
        self.stdout.write(f"Demo log-ins (password {PASSWORD}):")
        for email, _name, _language, _roles, does in shown:
            self.stdout.write(f"  {email:22} {does}")


@transaction.atomic
def load() -> None:
    """The organisation with two quarters of budgets, and one draft."""
    quarter = quarter_of(timezone.now())
    load_organisation((quarter, quarter.next()))
    write_draft()


def quarter_of(moment: datetime) -> Quarter:
    """The demo organisation's quarter, also before it exists."""
    return Quarter.at(moment, ZoneInfo(TIME_ZONE), 1)


@transaction.atomic
def load_organisation(periods: Sequence[Quarter]) -> None:
    """Make the organisation, its people, its policy and the budgets of `periods`."""
    Organisation.objects.create(
        name="Quanta Demo 量子示例",
        legal_name="Quanta Demo Technology Pte. Ltd. 量子示例科技有限公司",
        address="8 Marina View, Singapore 018960\n新加坡滨海景8号",
        currency="CNY",
        # Singapore: the place decides which cards may be bought (export control); the group reports in CNY.
        time_zone=TIME_ZONE,
        purchase_tax_rate=Decimal("0.13"),  # as its vendors on the mainland ask for it
        rent_tax_rate=Decimal("0.06"),  # a cloud's services there
        fiscal_start_month=1,
        language="zh-hans",
        stage="midsize",
    )
    teams = {
        slug: Team.objects.create(slug=slug, name=name, cost_center=f"CC-{slug[:2].upper()}01")
        for slug, name in TEAMS
    }
    people: dict[str, User] = {}
    for email, name, language, roles, _does in PEOPLE:
        people[email] = User.objects.create_user(email, PASSWORD, name=name, language=language)
        for role, team in roles:
            Membership.objects.create(
                user=people[email], role=role, team=teams[team] if team else None
            )
    load_policy(preset="company", by=None)
    finance, cto = people["he@demo.example"], people["chen@demo.example"]
    for period in periods:
        for slug, kind, amount in BUDGETS:
            budget = open_budget(
                team_id=teams[slug].pk, quarter=str(period), kind=kind, currency="CNY", by=finance
            )
            change = allot(
                budget_id=budget.pk, amount=amount, reason=f"Plan {period.year}", by=finance
            )
            if change.status == ChangeStatus.PROPOSED:
                confirm_change(change_id=change.pk, by=cto)


def write_draft() -> None:
    """A draft that waits for its author."""
    requests.create_request(
        team_id=Team.objects.get(slug="search").pk,
        kind=Kind.ONLINE_INFERENCE,
        title="Query rewriting service 查询改写服务",
        workload={
            "model": "llama-3.1-8b",
            "requests_per_day": 1_000_000,
            "input_tokens": 600,
            "output_tokens": 120,
        },
        by=User.objects.get(email="ming@demo.example"),
        need_by=today() + timedelta(days=75),
        duration_days=365,
        justification="Replaces the rule-based rewriter; A/B test shows +1.8 % clicks.",
        latency_class="chat",
        accuracy_loss_limit=0.01,
    )
