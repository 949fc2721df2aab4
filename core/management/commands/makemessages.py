"""makemessages that also knows `msg("…")`, the keyword of the pure cores, and writes stable files without guesses."""

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    """Django's command with one more keyword, sorted output, and no fuzzy matching: a guess is not a translation."""

    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=msg:1"]
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--no-fuzzy-matching"]
    msgattrib_options = [*makemessages.Command.msgattrib_options, "--sort-output"]
