"""Create the organisation and its first administrator: what a new production installation needs."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.models import Membership, Organisation, User
from core.roles import Role


class Command(BaseCommand):
    help = "Create the organisation and its first administrator."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True, help="the organisation's name")
        parser.add_argument("--email", required=True, help="the administrator's e-mail")
        parser.add_argument("--currency", default="CNY")
        parser.add_argument("--time-zone", default="Asia/Shanghai")
        parser.add_argument("--fiscal-start-month", type=int, default=1)
        parser.add_argument("--language", default="zh-hans")

    def handle(self, *args: Any, **options: Any) -> None:
        if Organisation.objects.exists():
            raise CommandError("An organisation exists already; nothing was changed.")
        organisation = Organisation(
            name=options["name"],
            currency=options["currency"],
            time_zone=options["time_zone"],
            fiscal_start_month=options["fiscal_start_month"],
            language=options["language"],
        )
        try:
            organisation.full_clean()
        except ValidationError as error:
            raise CommandError(
                "; ".join(f"{k}: {' '.join(v)}" for k, v in error.message_dict.items())
            ) from error
        password = getpass.getpass("Password of the administrator: ")
        if len(password) < 10:
            raise CommandError("The password needs at least 10 characters.")
        with transaction.atomic():
            organisation.save()
            user = User.objects.create_user(
                options["email"], password, name=options["email"].partition("@")[0]
            )
            Membership.objects.create(user=user, role=Role.ADMINISTRATOR)
        self.stdout.write(f"Created {organisation} and its administrator {user.email}.")
