"""Who a card is: model, memory, limits and VBIOS against the order, and its batch. From `nvidia-smi -q`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from core.messages import Message, msg
from planning.telemetry_formats.values import number
from procurement.evidence.nvidia_smi_state import State
from procurement.evidence.report import DeviceLog, Report
from procurement.evidence.types import Value, Verdict


def note(
    log: DeviceLog,
    state: State,
    verdict: Verdict,
    code: str,
    message: Message,
    key: str,
    value: Value = None,
    threshold: Value = None,
) -> None:
    log.note(verdict, code, message, value=value, threshold=threshold, where=state.place(key))


def judge_identity(report: Report, state: State, log: DeviceLog) -> None:
    order, policy = report.context.order, report.context.policy
    shown = state.hex_id("device_id")
    known = policy.model(log.model)
    reference = known.identity if known else {}
    wanted = _hex(order.get("expected_device_id")) or (
        None if order.get("ordered_model") else _hex(reference.get("device_id"))
    )
    ordered_model = (
        policy.model(str(order["ordered_model"])) if order.get("ordered_model") else None
    )
    if wanted and shown and shown != wanted:
        note(
            log,
            state,
            Verdict.FAIL,
            "model_mismatch",
            msg(
                "%(model)s (0x%(shown)s) is not what was ordered (0x%(wanted)s).",
                model=log.model or "?",
                shown=shown,
                wanted=wanted,
            ),
            "device_id",
            f"0x{shown}",
            f"0x{wanted}",
        )
        return  # the other figures of another model say nothing more
    if not wanted and order.get("ordered_model"):
        if ordered_model and known and ordered_model.name != known.name:
            note(
                log,
                state,
                Verdict.FAIL,
                "model_mismatch",
                msg(
                    "%(model)s is not the ordered %(wanted)s.",
                    model=log.model or "?",
                    wanted=str(order["ordered_model"]),
                ),
                "name",
                log.model,
                str(order["ordered_model"]),
            )
            return
        if not (ordered_model and known):
            note(
                log,
                state,
                Verdict.WARN,
                "model_not_compared",
                msg(
                    "%(model)s could not be compared with the ordered %(wanted)s.",
                    model=log.model or "?",
                    wanted=str(order["ordered_model"]),
                ),
                "name",
            )
    elif not wanted:
        report.caution(
            "identity_not_checked",
            msg(
                "Neither an order nor a reference for this model is known: its identity was not checked."
            ),
        )
    if wanted and not shown:
        note(
            log,
            state,
            Verdict.INCONCLUSIVE,
            "no_device_id",
            msg("The PCI device id is missing."),
            "device_id",
        )
    memory = number(order.get("expected_memory_mib"))
    reference_memory = number(reference.get("memory_mib"))
    golden = number(order.get("golden_memory_mib"))
    total = state.number("memory")
    if total is not None and (
        (memory is not None and total != memory)
        or (memory is None and reference_memory and abs(total / reference_memory - 1) > 0.02)
        or (memory is None and not reference_memory and golden and abs(total / golden - 1) > 0.02)
    ):
        limit = memory or reference_memory or golden
        note(
            log,
            state,
            Verdict.FAIL,
            "memory_size",
            msg("%(value)s MiB of memory instead of %(limit)s MiB", value=total, limit=limit or 0),
            "memory",
            total,
            limit,
        )
    if total is not None and golden and total != golden and abs(total / golden - 1) <= 0.02:
        note(
            log, state, Verdict.WARN, "memory_not_golden",
            msg("%(value)s MiB of memory; a card of this model showed %(limit)s MiB.", value=total, limit=golden),
            "memory", total, golden,
        )  # fmt: skip
    _limits(order, reference, state, log)
    _part_number(order, state, log)
    _not_seen_before(order, state, log)
    if order.get("tell_unknown"):
        _unknown(order, reference, state, log)
    allowed = order.get("vbios")
    if isinstance(allowed, list) and allowed and state.text("vbios") not in allowed:
        note(
            log,
            state,
            Verdict.FAIL,
            "vbios_unknown",
            msg(
                "VBIOS %(version)s is not in the released set.", version=state.text("vbios") or "?"
            ),
            "vbios",
            state.text("vbios"),
        )


def _limits(
    order: Mapping[str, Any], reference: Mapping[str, Any], state: State, log: DeviceLog
) -> None:
    """Clocks against the order or the data sheet: above means overclocked, below means another bin."""
    for key, ordered, known, label in (
        ("power_default", "expected_power_default_w", "power_w", msg("default power limit")),
        ("power_max", "expected_power_max_w", "power_max_w", msg("highest power limit")),
        ("max_sm", "expected_max_sm_mhz", "max_sm_mhz", msg("highest SM clock")),
        ("max_memory", "expected_mem_clock_mhz", "max_memory_mhz", msg("highest memory clock")),
    ):
        wanted = number(order.get(ordered)) or number(reference.get(known))
        shown = state.number(key)
        if wanted is None or shown is None or shown == wanted:
            continue
        verdict = Verdict.FAIL if shown > wanted or key == "power_default" else Verdict.WARN
        note(
            log,
            state,
            verdict,
            f"{key}_differs",
            msg(
                "The %(what)s is %(value)s instead of %(limit)s.",
                what=label,
                value=shown,
                limit=wanted,
            ),
            key,
            shown,
            wanted,
        )


def _part_number(order: Mapping[str, Any], state: State, log: DeviceLog) -> None:
    """Against the order's, which may be the seller's own number: a person looks."""
    wanted, shown = str(order.get("expected_part_number") or ""), state.text("part")
    if wanted and shown and _plain(shown) != _plain(wanted):
        note(
            log, state, Verdict.WARN, "part_number_differs",
            msg("Part number %(value)s; the order says %(limit)s.", value=shown, limit=wanted), "part", shown, wanted,
        )  # fmt: skip


def _not_seen_before(order: Mapping[str, Any], state: State, log: DeviceLog) -> None:
    """A VBIOS that no accepted card of this model runs."""
    seen, shown = order.get("vbios_seen"), state.text("vbios")
    if isinstance(seen, list) and seen and shown and shown not in seen and not order.get("vbios"):
        note(
            log, state, Verdict.WARN, "vbios_new",
            msg("VBIOS %(version)s is on no card of this model accepted before (%(seen)s).", version=shown,
                seen=", ".join(map(str, seen[:4]))),
            "vbios", shown,
        )  # fmt: skip


def _unknown(
    order: Mapping[str, Any], reference: Mapping[str, Any], state: State, log: DeviceLog
) -> None:
    """Facts that nothing is known to compare with, or that the file does not show: told one by one, never passed."""
    for name, keys, expected, known, label in (
        ("device_id", ("device_id",), ("expected_device_id",), "device_id", msg("device id")),
        (
            "memory",
            ("memory",),
            ("expected_memory_mib", "golden_memory_mib"),
            "memory_mib",
            msg("memory in total"),
        ),
        ("power", ("power_default",), ("expected_power_default_w",), "power_w", msg("power limit")),
        ("clocks", ("max_sm",), ("expected_max_sm_mhz",), "max_sm_mhz", msg("highest clocks")),
        ("vbios", ("vbios",), ("vbios", "vbios_seen"), "", msg("VBIOS")),
        ("part_number", ("part",), ("expected_part_number",), "", msg("part number")),
    ):
        compared = any(order.get(field) for field in expected) or bool(
            known and reference.get(known)
        )
        shown = all(state.text(key) is not None for key in keys)
        if compared and shown:
            continue
        text = (
            msg(
                "The %(what)s was compared with nothing: what it should be is not known.",
                what=label,
            )
            if shown
            else msg("The file does not show the %(what)s.", what=label)
        )
        note(log, state, Verdict.WARN, f"{name}_not_known", text, keys[0])


def _plain(number_: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", number_.upper())


def judge_batch(report: Report, logs: list[tuple[State, DeviceLog]]) -> None:
    versions = {str(log.figures["vbios"]) for _, log in logs if "vbios" in log.figures}
    if len(versions) > 1:
        report.caution(
            f"vbios_versions_in_batch:{len(versions)}",
            msg("The cards run %(count)s VBIOS versions.", count=len(versions)),
        )
        report.counts["vbios_versions"] = len(versions)
    by_model: dict[str | None, list[tuple[State, DeviceLog]]] = {}
    for state, log in logs:
        by_model.setdefault(log.model, []).append((state, log))
    for cards in by_model.values():
        found = Counter(str(log.figures.get("vbios", "")) for _, log in cards)
        usual = max(found, key=lambda version: (found[version], _order(version)))
        for state, log in cards:
            version = log.figures.get("vbios")
            if version and version != usual:
                note(
                    log,
                    state,
                    Verdict.WARN,
                    "vbios_differs_from_batch",
                    msg(
                        "VBIOS %(version)s differs from the batch's %(usual)s.",
                        version=str(version),
                        usual=usual,
                    ),
                    "vbios",
                    version,
                    usual,
                )
    serials = Counter(log.serial for _, log in logs if log.serial)
    uuids = Counter(log.uuid for _, log in logs if log.uuid)
    for state, log in logs:
        if log.serial and serials[log.serial] > 1:
            note(
                log,
                state,
                Verdict.FAIL,
                "duplicate_serial",
                msg("Serial %(serial)s appears on several cards.", serial=log.serial),
                "serial",
                log.serial,
            )
        if log.uuid and uuids[log.uuid] > 1:
            note(
                log,
                state,
                Verdict.FAIL,
                "duplicate_uuid",
                msg("UUID %(uuid)s appears on several cards.", uuid=log.uuid),
                "uuid",
                log.uuid,
            )
        if not log.serial:
            report.caution("no_serial", msg("A card shows no serial number: bind it by UUID."))


def _order(version: str) -> list[int]:
    """Versions such as 96.00.A5.00.01 in order; their parts are hexadecimal."""
    return [
        int(part, 16) if re.fullmatch(r"[0-9A-Fa-f]{1,8}", part) else -1
        for part in version.split(".")
    ]


def _hex(value: object) -> str | None:
    text = str(value or "").removeprefix("0x").upper()
    return (
        text
        if re.fullmatch(r"[0-9A-F]{4}", text)
        else text[:4]
        if re.fullmatch(r"[0-9A-F]{4}10DE", text)
        else None
    )
