"""The evidence of a claim as one archive: for the vendor, who does not log in here."""

from __future__ import annotations

import json
import zipfile
from typing import IO, Any

from core.errors import InputError
from core.messages import msg
from procurement.models import Rma
from procurement.services.acceptance import EvidenceAltered
from procurement.services.evidence_checks import is_unaltered


def write_bundle(target: IO[bytes], rma: Rma) -> None:
    """Write a ZIP with every attached file and `claim.json`: serial, fault, verdicts with rule, value and limit.

    Raises InputError when nothing is attached and EvidenceAltered when a file is not what was uploaded.
    """
    files = list(rma.evidence.select_related("file").order_by("pk"))
    if not files:
        raise InputError("evidence", msg("No evidence is attached"), value=0, limit=1)
    for file in files:
        if not is_unaltered(file):
            raise EvidenceAltered(
                msg("The content of %(name)s is not what was uploaded", name=str(file))
            )
    names: dict[int, str] = {}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, file in enumerate(files, 1):
            names[file.pk] = f"{number:02d}-{file.file.name}"
            with file.file.file.open("rb") as content, archive.open(names[file.pk], "w") as out:
                for chunk in iter(lambda: content.read(1 << 20), b""):
                    out.write(chunk)
        archive.writestr("claim.json", json.dumps(_claim(rma, names), ensure_ascii=False, indent=1))


def _claim(rma: Rma, names: dict[int, str]) -> dict[str, Any]:
    verdicts = rma.asset.verdicts.filter(evidence__in=names).select_related("evidence__file")
    return {
        "rma": rma.number,
        "vendor_rma": rma.vendor_number or None,
        "serial": rma.asset.serial,
        "uuid": rma.asset.uuid,
        "model": rma.asset.model,
        "fault_on": rma.fault_on.isoformat(),
        "fault": rma.fault,
        "bundle_sha256": rma.bundle_sha256 or None,
        "files": [
            {
                "name": names[verdict_file.pk],
                "sha256": verdict_file.sha256,
                "format": verdict_file.format,
            }
            for verdict_file in rma.evidence.order_by("pk")
        ],
        "verdicts": [
            {
                "file": names[verdict.evidence_id],
                "verdict": verdict.verdict,
                "policy": verdict.evidence.policy_version,
                "reasons": [
                    {
                        key: reason.get(key)
                        for key in ("rule", "verdict", "value", "threshold", "where")
                    }
                    for reason in verdict.reasons
                ],
            }
            for verdict in verdicts.order_by("evidence_id")
        ],
    }
