"""The acceptance certificate as PDF: who signed what, on which evidence; the evidence itself is inside."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

from core.errors import DomainError
from core.files import is_intact
from core.messages import msg
from core.pdf import Attachment, render_pdf
from procurement.models import (
    Acceptance,
    AcceptanceCertificate,
    AcceptanceUnit,
    AssetWarranty,
    EvidenceFile,
    RunItem,
)
from procurement.models.burn_in import DecidedBy, ItemResult
from procurement.models.evidence import VerdictChoice
from procurement.selectors.promised import promised_against_measured

# What a PDF reader still opens. Larger files are named with their hash and stay in the archive.
MAX_EMBEDDED_FILE = 20 * 1024 * 1024
MAX_EMBEDDED = 100 * 1024 * 1024


class EvidenceMissing(DomainError):
    """A file that the certificate rests on is altered: no certificate is drawn over it."""

    code = "evidence_altered"


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One line of the evidence index."""

    number: int
    name: str
    format: str
    verdict: Any  # lazy words: the document's language decides
    size: int
    sha256: str
    embedded_as: str  # empty: too large to embed


def render_certificate(certificate: AcceptanceCertificate) -> bytes:
    """PDF bytes; the same acceptance and language give the same bytes. No price is in it: whoever reads the delivery
    opens it.

    Raises EvidenceMissing when a file is no longer what was uploaded. Reads whole files: call it in a task.
    """
    acceptance = certificate.acceptance
    if acceptance.decided_at is None:
        raise ValueError("a certificate is drawn after the signature")
    files = _files(acceptance)
    index, attachments = _evidence(files)
    units = list(
        acceptance.units.select_related("asset__parent", "run__operator", "run__template")
        .order_by("-included", "asset__serial")
    )  # fmt: skip
    included = [unit for unit in units if unit.included]
    return render_pdf(
        "procurement/certificate.html",
        {
            "acceptance": acceptance,
            "delivery": acceptance.delivery,
            "order": acceptance.delivery.order,
            "units": included,
            "excluded": [unit for unit in units if not unit.included],
            "total": len(units),
            "deviations": _deviations(included),
            "promised": promised_against_measured(
                acceptance.delivery,
                assets=[pk for u in included for pk in (u.asset_id, u.asset.parent_id) if pk],
            ),
            "warranties": _warranties(included),
            "policies": sorted({file.policy_version for file in files if file.policy_version}),
            "index": index,
            "left_out": [row for row in index if not row.embedded_as],
        },
        certificate.language,
        made_at=acceptance.decided_at,
        attachments=attachments,
        archive=True,
    )  # fmt: skip


def certificate_name(certificate: AcceptanceCertificate) -> str:
    """`acceptance-AC-2026-0001-zh-hans.pdf`."""
    return f"acceptance-{certificate.acceptance.number}-{certificate.language}.pdf"


def _files(acceptance: Acceptance) -> list[EvidenceFile]:
    wanted = [row["id"] for row in acceptance.evidence_index]
    return list(EvidenceFile.objects.filter(pk__in=wanted).select_related("file").order_by("pk"))


def _evidence(files: list[EvidenceFile]) -> tuple[list[IndexRow], list[Attachment]]:
    rows: list[IndexRow] = []
    attachments: list[Attachment] = []
    taken: set[str] = set()
    total = 0
    for number, file in enumerate(files, 1):
        if not is_intact(file.file) or file.file.sha256 != file.sha256:
            raise EvidenceMissing(
                msg("The content of %(name)s is not what was uploaded", name=file.file.name)
            )
        size = file.file.size
        name = ""
        if size <= MAX_EMBEDDED_FILE and total + size <= MAX_EMBEDDED:
            name = _free_name(file.file.name, taken)
            with file.file.file.open("rb") as content:
                attachments.append(Attachment(name, content.read(), f"SHA-256 {file.sha256}"))
            total += size
        verdict = VerdictChoice(file.verdict).label if file.verdict else ""
        rows.append(IndexRow(number, file.file.name, file.format, verdict, size, file.sha256, name))
    return rows, attachments


def _free_name(name: str, taken: set[str]) -> str:
    """`name`, numbered when another file of this certificate bears it."""
    for n in count(1):
        candidate = name if n == 1 else f"{n}-{name}"
        if candidate not in taken:
            taken.add(candidate)
            return candidate
    raise AssertionError("count() does not end")


def _deviations(units: list[AcceptanceUnit]) -> list[dict[str, Any]]:
    """What was waived, held not applicable, or passed by a person where evidence would have decided.

    One row for each finding, with the serial numbers that it holds for.
    """
    rows = (
        RunItem.objects.filter(run__in=[unit.run_id for unit in units])
        .exclude(decided_by=None)
        .exclude(item__decided_by=DecidedBy.PERSON, result=ItemResult.PASS)
        .select_related("item", "decided_by", "run__asset")
    )
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows.order_by("item__position", "run__asset__serial"):
        key = (row.item_id, row.result, row.note, row.decided_by_id)
        same = found.setdefault(key, {"row": row, "serials": []})
        same["serials"].append(row.run.asset.serial)
    return list(found.values())


def _warranties(units: list[AcceptanceUnit]) -> list[dict[str, Any]]:
    """First and last covered day with the number of units that share them."""
    grouped: dict[tuple[Any, Any], int] = {}
    rows = AssetWarranty.objects.filter(asset__in=[unit.asset_id for unit in units])
    for row in rows:
        key = (row.starts_on, row.ends_on)
        grouped[key] = grouped.get(key, 0) + 1
    return [
        {"starts_on": start, "ends_on": end, "units": n}
        for (start, end), n in sorted(grouped.items(), key=lambda entry: str(entry[0]))
    ]
