"""The real product under test: script/server with its own data folder (and database), driven from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

ROOT = Path(__file__).resolve().parent.parent.parent
CHROMIUM = "/usr/bin/chromium"
START_SECONDS = 420


@dataclass(frozen=True)
class Product:
    """A running product."""

    url: str
    data_dir: Path
    process: subprocess.Popen[bytes]
    env: dict[str, str]

    def manage(self, *args: str) -> str:
        """Run a management command against the same data."""
        done = subprocess.run(
            [".venv/bin/python", "manage.py", *args],
            cwd=ROOT,
            env=self.env,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def scratch_database(environment_url: str) -> Iterator[str]:
    """An empty PostgreSQL database beside the one named in the environment; dropped afterwards."""
    parts = urlsplit(environment_url)
    name = f"headroom_e2e_{os.getpid()}"
    admin = urlunsplit(("postgresql", parts.netloc, "/postgres", "", ""))
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    try:
        yield urlunsplit(("postgres", parts.netloc, f"/{name}", "", ""))
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def start(data_dir: Path, **extra: str) -> Product:
    """Start script/server and wait until it is ready."""
    port = free_port()
    env = {
        k: v
        for k, v in os.environ.items()
        if k not in {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "EMBEDDED"}
    }
    env |= {
        "PORT": str(port),
        "DATA_DIR": str(data_dir),
        "EMBEDDED": "1",
        "WEB_WORKERS": "1",
        **extra,
    }
    log = data_dir / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["script/server"],
            cwd=ROOT,
            env=env,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://localhost:{port}"
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{url}/readyz", timeout=5) as answer,
        ):
            if answer.status == 200:
                return Product(
                    url,
                    data_dir,
                    process,
                    env | {"REDIS_URL": extra.get("REDIS_URL", f"unix://{data_dir}/redis.sock")},
                )
        time.sleep(0.5)
    stop(process)
    raise AssertionError(
        f"the product did not become ready; its log ends:\n{log.read_text()[-4000:]}"
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C, and no mercy after half a minute."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product with the demo organisation, on SQLite or on the PostgreSQL and Redis of the environment."""
    # A short path: Redis listens on a Unix socket inside it.
    data_dir = tmp_path_factory.mktemp("hr")
    with contextlib.ExitStack() as stack:
        extra = {}
        if url := os.environ.get("DATABASE_URL"):
            extra["DATABASE_URL"] = stack.enter_context(scratch_database(url))
        if redis_url := os.environ.get("REDIS_URL"):
            extra |= {"REDIS_URL": redis_url, "CELERY_PREFIX": f"e2e{os.getpid()}"}
        running = start(data_dir, **extra)
        stack.callback(stop, running.process)
        yield running


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, object]:
    return {
        "executable_path": CHROMIUM,
        "args": [
            "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync",
        ],
    }  # fmt: skip


# Playwright's loop runs in the thread until it is stopped, and Django refuses the database meanwhile: the plugin's
# fixtures of the session would break every test that the same process runs after a browser's. These end with the file.


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def browser_context_args() -> dict[str, object]:
    return {}


@pytest.fixture(scope="module")
def browser(
    playwright: Playwright, browser_type_launch_args: dict[str, object]
) -> Iterator[Browser]:
    running = playwright.chromium.launch(**browser_type_launch_args)  # type: ignore[arg-type]
    yield running
    running.close()
