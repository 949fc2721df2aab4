"""Revise what is known of a subject: the next dated revision is added, the earlier ones stay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models, transaction

from catalog import policies
from catalog.changes import tell
from catalog.models import (
    Accelerator,
    AcceleratorSpec,
    ArchitectureSpec,
    Confidence,
    ModelArchitecture,
    Origin,
    PlatformSpec,
    Precision,
    ServerPlatform,
    TcoDefault,
    TcoDefaultValue,
)
from core.audit import record
from core.errors import InputError, StaleData
from core.messages import msg
from core.models import User
from core.policies import require
from core.transitions import lock


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of thing with revisions: its tables, the field that ties them, and what may be corrected."""

    model: type[Any]
    revision: type[Any]
    field: str
    noun: str  # of the audit action
    correctable: tuple[str, ...]


ACCELERATOR = Subject(
    Accelerator, AcceleratorSpec, "accelerator", "accelerator",
    ("hbm_bytes", "hbm_bandwidth", "peak_flops", "tdp", "link_bandwidth", "pcie_bandwidth"),
)  # fmt: skip
ARCHITECTURE = Subject(
    ModelArchitecture, ArchitectureSpec, "architecture", "architecture",
    ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "max_context", "params_total",
     "params_active"),
)  # fmt: skip
PLATFORM = Subject(
    ServerPlatform, PlatformSpec, "platform", "platform",
    ("max_power", "typical_power_low", "typical_power_high", "rack_units", "weight"),
)  # fmt: skip
TCO = Subject(TcoDefault, TcoDefaultValue, "default", "tco_default", ("low", "value", "high"))
SUBJECTS = {subject.noun: subject for subject in (ACCELERATOR, ARCHITECTURE, PLATFORM, TCO)}


def add_revision(subject: Subject, of: Any, *, origin: Origin, **fields: Any) -> Any:
    """The next revision of `of`, made current as the rule says: a correction wins over what is shipped later."""
    last = subject.revision.objects.filter(**{subject.field: of}).order_by("-number").first()
    row = subject.revision(
        **{subject.field: of},
        number=1 if last is None else last.number + 1,
        origin=origin,
        **fields,
    )
    if origin == Origin.CORRECTION:
        _validate(row)
    row.save()
    if origin == Origin.REFERENCE:
        of.reference = row
    if origin == Origin.CORRECTION or of.current is None or not of.current.is_correction:
        of.current = row
    of.save(update_fields=["reference", "current"])
    return row


@transaction.atomic
def correct(
    subject: Subject,
    *,
    pk: int,
    changes: dict[str, Any],
    reason: str,
    source: str,
    as_of: date,
    confidence: str,
    by: User,
    source_url: str = "",
    seen: int | None = None,
) -> Any:
    """State other figures than the current ones, with reason and source; the earlier revisions stay.

    `changes` holds the figures that differ, in SI units. `seen` is the revision number that the caller read.

    Raises NotPermitted, InputError (nothing changes, no reason, a value that cannot be), or StaleData.
    """
    require(policies.can_correct(by))
    of = lock(subject.model.objects.all(), pk)
    current = of.current
    if seen is not None and current.number != seen:
        raise StaleData(changes={"revision": (str(seen), str(current.number))})
    if not reason.strip():
        raise InputError("reason", msg("A correction needs a reason"), value=reason)
    for name, value in changes.items():
        if name not in subject.correctable and getattr(current, name, None) != value:
            raise InputError(
                name, msg("%(field)s cannot be corrected here", field=name), value=value
            )
    changed = {k: v for k, v in changes.items() if getattr(current, k, None) != v}
    if not changed:
        raise InputError("changes", msg("No figure differs from the current one"))
    _check_values(subject, changed)
    figures = current.figures | changed
    if subject is TCO:
        _check_order(figures)
    if subject is ARCHITECTURE:
        # They followed from the old shape; a study computes them again from the new one.
        figures |= {"params_computed_total": None, "params_computed_active": None}
    if subject is ACCELERATOR and "peak_flops" in changed:
        figures["marketing_flops"] = {
            dtype: rate
            for dtype, rate in current.marketing_flops.items()
            if rate >= figures["peak_flops"].get(dtype, rate + 1)
        }
    row = add_revision(
        subject,
        of,
        origin=Origin.CORRECTION,
        **figures,
        reason=reason.strip(),
        author=by,
        source=source,
        source_url=source_url,
        as_of=as_of,
        as_of_precision=Precision.DAY,
        confidence=Confidence(confidence),
        notes=current.notes,
    )
    record(
        f"{subject.noun}.corrected",
        on=of,
        by=by,
        reason=reason.strip(),
        revision=row.number,
        source=source,
        changes={name: [getattr(current, name), value] for name, value in changed.items()},
    )
    tell()
    return row


def _validate(row: Any) -> None:
    """Raise InputError for the first field that the table would refuse."""
    try:
        row.full_clean(validate_unique=False, exclude=["author"])
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InputError(
            field, msg("%(field)s: %(problem)s", field=field, problem=" ".join(messages))
        ) from error


def _check_values(subject: Subject, changed: dict[str, Any]) -> None:
    """Every number is finite and above 0 (a cost default may be 0 or negative); rates by dtype as well."""
    for name, value in changed.items():
        numbers = value.values() if isinstance(value, dict) else [value]
        if isinstance(value, list):
            numbers = value
        for number in numbers:
            if number is None and _nullable(subject, name):
                continue
            positive = subject is not TCO
            finite = isinstance(number, int | float) and abs(number) < 1e30
            if not finite or (positive and not number > 0):
                raise InputError(
                    name,
                    msg(
                        "%(field)s is %(value)s; it must be a number above 0",
                        field=name,
                        value=str(number),
                    )
                    if positive
                    else msg(
                        "%(field)s is %(value)s; it must be a number", field=name, value=str(number)
                    ),
                    value=number,
                    limit="> 0" if positive else None,
                )


def _check_order(figures: dict[str, Any]) -> None:
    """A cost default lies between its low and its high, year by year where it is a series."""
    series = [
        figures[name] if isinstance(figures[name], list) else [figures[name]]
        for name in TCO.correctable
    ]
    if len({len(part) for part in series}) != 1 or not all(
        low <= value <= high for low, value, high in zip(*series, strict=True)
    ):
        raise InputError(
            "value",
            msg("The default must lie between low and high"),
            value=str(figures["value"]),
            limit=f"{figures['low']} – {figures['high']}",
        )


def _nullable(subject: Subject, name: str) -> bool:
    try:
        field: models.Field[Any, Any] = subject.revision._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return bool(field.null)
