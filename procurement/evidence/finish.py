"""What holds for every format once a file has been read: damage, identity, and what was ordered."""

from __future__ import annotations

import re
from collections import Counter

from core.messages import msg
from planning.telemetry_formats.source import Source
from procurement.evidence.report import Report
from procurement.evidence.types import Evidence, Verdict

_SERIAL = re.compile(r"[\w./-]{1,40}")
_UUID = re.compile(r"(?:GPU-|MIG-)?[0-9A-Za-z][\w.:/-]{3,63}")
_BUS = re.compile(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.\d)?")

_NOTES = {
    "utf16": msg("The file is in UTF-16; it was converted."),
    "gbk": msg("The file is in a Chinese encoding; it was converted."),
    "ansi": msg("Terminal colours were removed from the file."),
}


def finish(report: Report, source: Source, formats: list[str]) -> Evidence:
    """Freeze a report after the checks that need the whole of it."""
    for note in sorted(source.notes & set(_NOTES)):
        report.caution(note, _NOTES[note])
    if source.damage:
        report.unproven(
            "damaged_file",
            msg(
                "The file holds bytes that no tool writes: %(what)s.",
                what=", ".join(sorted(source.damage)),
            ),
        )
    if len(formats) > 1:
        report.unproven(
            "several_tools",
            msg(
                "Output of several tools is in one file (%(tools)s); only the first was read. Split the file.",
                tools=", ".join(formats),
            ),
        )
    _check_names(report)
    _check_hosts(report)
    _check_order(report)
    return report.freeze()


def _check_names(report: Report) -> None:
    """A serial, UUID or bus address that is none shows that the file was patched where it names the card."""
    for device in report.devices.values():
        for name, value, form in (
            ("serial", device.serial, _SERIAL),
            ("UUID", device.uuid, _UUID),
            ("bus", device.bus, _BUS),
        ):
            if value and not form.fullmatch(value):
                device.note(
                    Verdict.INCONCLUSIVE,
                    "identity_damaged",
                    msg("%(value)s is no %(name)s.", value=value[:80], name=name),
                    value=value[:80],
                )


def _check_hosts(report: Report) -> None:
    """One card cannot be in two servers: such a file was copied or its hosts were mixed up."""
    places: dict[str, set[str]] = {}
    for device in report.devices.values():
        for identity in (device.serial, device.uuid):
            if identity and device.host:
                places.setdefault(identity, set()).add(device.host)
    for device in report.devices.values():
        for identity in (device.serial, device.uuid):
            if identity and len(places.get(identity, ())) > 1:
                device.note(
                    Verdict.FAIL,
                    "same_card_on_two_hosts",
                    msg("%(identity)s is shown by several hosts.", identity=identity),
                    value=identity,
                )


def _check_order(report: Report) -> None:
    order = report.context.order
    quantity = order.get("quantity")
    named = len(report.devices)
    if isinstance(quantity, int) and named and named < quantity and not report.usage:
        report.unproven(
            "devices_missing",
            msg(
                "The order has %(ordered)s devices, the file shows %(shown)s.",
                ordered=quantity,
                shown=named,
            ),
        )
    delivered = order.get("serials")
    if not isinstance(delivered, list) or not delivered:
        return
    known = {str(serial).strip().upper() for serial in delivered}
    for device in report.devices.values():
        if device.serial and device.serial.upper() not in known:
            device.note(
                Verdict.FAIL,
                "serial_not_delivered",
                msg("Serial %(serial)s is not among the delivered ones.", serial=device.serial),
                value=device.serial,
            )
    uses = Counter(device.serial for device in report.devices.values() if device.serial)
    report.counts.setdefault("serials", len(uses))
