"""Put a preset of approval rules in force."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.errors import DomainError
from planning.models.approvals import Preset
from planning.services.policy_presets import load_policy


class Command(BaseCommand):
    help = "Put a preset of approval rules in force. Safe to run again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        presets = [name for name in Preset.values if name != Preset.CUSTOM]
        parser.add_argument("--preset", choices=presets, default=Preset.SMALL_TEAM)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            policy = load_policy(preset=options["preset"], by=None)
        except DomainError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{policy.preset}: {policy.rules.count()} rules in force")
