"""Where files lie: on this machine, each whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage


class WholeFileStorage(FileSystemStorage):
    """A write that fails half-way leaves nothing behind."""

    def _save(self, name: str, content: File[Any]) -> str:
        try:
            return str(super()._save(name, content))  # type: ignore[misc]
        except OSError:
            Path(self.path(name)).unlink(missing_ok=True)  # half a file is none
            raise
