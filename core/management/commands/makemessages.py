"""makemessages that also knows `msg("…")`, the keyword of the pure cores, and writes stable files."""

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    """Django's command with one more keyword."""

    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=msg:1"]
