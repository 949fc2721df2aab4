"""The process serves with a secret that nobody guesses, or not at all."""

import os
import subprocess
import sys

import pytest
from django.conf import settings

GOOD = "".join(map(chr, range(48, 98)))


def start(secret: str, tmp_path) -> subprocess.CompletedProcess[str]:
    """Read the settings as a server does that has this secret and nothing else."""
    return subprocess.run(
        [sys.executable, "-c", "import config.settings"],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "SECRET_KEY": secret, "DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


GUESSED = ["", "change-me", "short", "a" * 50, "abab" * 12, "django-insecure-" + GOOD]


@pytest.mark.parametrize("secret", GUESSED)
def test_a_secret_that_can_be_guessed_serves_nothing(secret, tmp_path):
    refused = start(secret, tmp_path)
    assert refused.returncode != 0
    assert "SECRET_KEY" in refused.stderr


def test_a_long_one_serves(tmp_path):
    assert start(GOOD, tmp_path).returncode == 0
