"""The sample files and what a correct reader must find in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from procurement.evidence.policy import EvidenceContext
from procurement.evidence.read import read_evidence
from procurement.evidence.types import Evidence

FOLDER = Path(__file__).parents[2] / "data" / "evidence"
SUFFIX = ".expected.json"
NAMES = sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob("*" + SUFFIX))


def expected(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / (name + SUFFIX)).read_text())


def context(name: str) -> EvidenceContext:
    want = expected(name)
    keys = ("policy_used", "order_context", "vendor_promise")
    return EvidenceContext.from_json({key: want[key] for key in keys if key in want})


def content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


def read(name: str, data: bytes | None = None) -> Evidence:
    """A sample's evidence; `data` stands in for its content."""
    return read_evidence(content(name) if data is None else data, context=context(name))
