"""Write the tables of planning/states.py to docs/states.md: a diagram and a table for each machine."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import translation

from planning.states import MACHINES, Rule


def draw() -> str:
    """The whole document, in English."""
    parts = [
        "# States\n\nWritten by `manage.py draw_states` from `planning/states.py`; a test fails when they differ.\n"
        "† marks a state that nothing leads out of. A superuser has none of these parts without the role.\n"
    ]
    with translation.override("en"):
        for name, (states, rules) in MACHINES.items():
            parts.append(_machine(name, states.values, rules))
    return "\n".join(parts)


def _machine(name: str, states: list[str], rules: tuple[Rule, ...]) -> str:
    left = {source for rule in rules for source in rule.sources}
    lines = [f"## {name}\n", "```mermaid", "stateDiagram-v2", f"    [*] --> {states[0]}"]
    for rule in rules:
        for source in rule.sources:
            lines += [f"    {source} --> {target}: {rule.action}" for target in rule.targets
                      if target != source]  # fmt: skip
    lines += [f"    {state} --> [*]" for state in states if state not in left]
    lines += ["```\n", "| from | action | by | when | to | then |", "|---|---|---|---|---|---|"]
    for rule in rules:
        targets = ", ".join(f"{target}{'' if target in left else ' †'}" for target in rule.targets)
        cells = [
            ", ".join(rule.sources), rule.action, ", ".join(rule.actors), rule.guard or "–", targets,
            rule.effect or "–",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


class Command(BaseCommand):
    help = "Write docs/states.md from the tables in the code."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", type=Path, default=settings.BASE_DIR / "docs" / "states.md")

    def handle(self, *args: Any, **options: Any) -> None:
        options["to"].write_text(draw(), encoding="utf-8")
        self.stdout.write(f"{options['to']}")
