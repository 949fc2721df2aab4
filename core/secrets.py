"""Where the embedded product keeps its own secret."""

import secrets
from pathlib import Path


def local_secret(data_dir: Path) -> str:
    """A random secret, made once and kept in the data folder with owner-only rights."""
    path = data_dir / "secret_key"
    if path.is_file():
        return path.read_text().strip()
    data_dir.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x") as file:
            path.chmod(0o600)
            file.write(secrets.token_urlsafe(50))
    except FileExistsError:  # another process of the same start was first
        pass
    return path.read_text().strip()


def throwaway_secret() -> str:
    """A secret for commands that neither sign nor read anything."""
    return secrets.token_urlsafe(50)
