#!/usr/bin/env python
"""Django's command line."""

import os
import select
import sys

READER_GONE = 128 + 13  # what a shell reports for a program that SIGPIPE ended


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    try:
        try:
            execute_from_command_line(sys.argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not reader_gone():
            raise
        sys.exit(READER_GONE)


def reader_gone() -> bool:
    """Whether nobody reads standard output any more (`… | head`); it then points nowhere, so that leaving is quiet."""
    output = select.poll()
    output.register(sys.stdout.fileno(), select.POLLOUT)
    if not any(event & select.POLLERR for _, event in output.poll(0)):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


if __name__ == "__main__":
    main()
