"""The table that `dcgmi diag` prints, DCGM 3.x ("Pass - All") and 4.x ("GPU0: Pass"). Long text is wrapped at 45."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from core.messages import msg
from procurement.evidence.dcgm_rules import DiagError, DiagResult, is_software_check, judge
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report, line

FORMATS = ("dcgmi_diag_text",)

_RULE = re.compile(r"^\+-+\+-+\+$")
_HEAD_RULE = re.compile(r"^\+=+\+=+\+$")
_SECTION = re.compile(r"^[|+]-{2,}\s+(\w[\w ]{0,30}?)\s+-+[+|]-+[|+]$")
_ROW = re.compile(r"^\|(.{10,60}?)\|(.{10,200})\|$")
_STATUS = re.compile(
    r"^(Pass|Fail|Skip|Warn|Not Run)\s*(?:-\s*(?:(All)|GPUs?:\s*([\d, ]+)))?$", re.IGNORECASE
)
_ENTITY = re.compile(r"^([A-Za-z]+)\s?(\d{1,4}):\s*(Pass|Fail|Skip|Warn|Not Run)$", re.IGNORECASE)
_NOTE = re.compile(r"^(Warning|Info|Error)\b(?::\s*([A-Za-z]+)\s?(\d{1,4}))?")
_WRAP = 45


@dataclass(slots=True)
class _Test:
    name: str
    category: str
    number: int
    statuses: list[tuple[str, tuple[int, ...] | None, str | None, int]] = field(
        default_factory=list
    )
    errors: list[tuple[DiagError, int | None, int]] = field(default_factory=list)
    info: list[tuple[str, int | None]] = field(default_factory=list)


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("dcgmi_diag_text", context)
    tests: list[_Test] = []
    section, note = "", ""
    sections: list[str] = []
    gpus = 0
    last_rule = head_rules = odd = 0
    last = 0
    about: int | None = None
    for number, kind, name, value in _rows(document):
        last = number
        if kind == "rule":
            last_rule = number
        elif kind == "head":
            head_rules += 1
        elif kind == "section":
            section, note = name, ""
            sections.append(name)
        elif kind == "odd" or not section:
            odd += 1
        elif section.lower() == "metadata":
            odd += bool(_STATUS.match(value.strip()) or _ENTITY.match(value.strip()))
            gpus = max(gpus, _metadata(report, name, value))
        elif found := _NOTE.match(name):
            note = found[1].lower()
            about = int(found[3]) if found[3] else None
            _text_row(tests, note, value, about, number, new=True)
        elif _STATUS.match(value.strip()) or _ENTITY.match(value.strip()):
            if name:
                tests.append(_Test(name, section, number))
            if tests:
                _status_row(tests[-1], value.strip(), number)
            note = ""
        elif not name and note:
            _text_row(tests, note, value, about, number, new=False)
        elif not name and tests and re.fullmatch(r"[\d, ]+", value.strip()):
            _more_indices(tests[-1], value)
        elif name and value.strip():
            odd += 1
    odd += _misplaced(tests, sections)
    results = list(_results(tests))
    report.variant = "dcgm4 table" if any(len(t.statuses) > 1 for t in tests) else "dcgm3 table"
    judge(report, results, range(gpus))
    report.counts["tests"] = len(tests)
    if not head_rules or not last_rule or last_rule < last or odd:
        report.incomplete(
            "table_cut", msg("The table has no end or holds rows that cannot be read.")
        )
    if not report.devices:
        report.incomplete("no_devices", msg("The diagnostic names no device."))
    report.caution(
        "no_serials",
        msg(
            "The table prints no serial numbers: the devices cannot be bound to the delivered ones."
        ),
    )
    return report


def _rows(document: Document) -> Iterator[tuple[int, str, str, str]]:
    """(line, kind, name, value) of the table: head, section, row, rule (its end), or odd where a line has no place.

    A table is a rule, its title, a rule of equals signs, sections with rows, and a rule.
    """
    place = "outside"
    for each in document.lines():
        text = each.text.strip()
        kind, name, value = "", "", ""
        if _HEAD_RULE.match(text):
            kind = "head" if place == "title" else "odd"
            place = "inside"
        elif _RULE.match(text):
            kind = {"inside": "rule", "outside": ""}.get(place, "odd")
            place = "outside" if place == "inside" else "top"
        elif section := _SECTION.match(text):
            kind, name = "section" if place == "inside" else "odd", section[1].strip()
            place = "inside"
        elif row := _ROW.match(text):
            name, value = row[1].strip(), row[2][1:]
            if place == "top" and name == "Diagnostic":
                place = "title"
            else:
                kind = "row" if place == "inside" else "odd"
        elif text.startswith(("|", "+")):
            kind = "odd"
        if kind:
            yield each.number, kind, name, value


def _misplaced(tests: list[_Test], sections: list[str]) -> int:
    """Signs that the rows were not printed in this order: the tool repeats and empties no section, and no check of
    the software stands below a section of hardware tests or a hardware test below the software's.
    """
    shown = [section for section in sections if section.lower() != "metadata"]
    filled = {test.category for test in tests}
    wrong = sum(
        is_software_check(test.name) is not (test.category.lower() == "deployment")
        for test in tests
    )
    return wrong + len(sections) - len(set(sections)) + sum(s not in filled for s in shown)


def _metadata(report: Report, name: str, value: str) -> int:
    """Versions, and how many device ids are listed."""
    if name == "DCGM Version":
        report.tool_version = value.strip()
    elif name == "Driver Version Detected":
        report.driver_version = value.strip()
    elif name.startswith("GPU Device IDs"):
        return len([part for part in value.split(",") if part.strip()])
    return 0


def _status_row(test: _Test, value: str, number: int) -> None:
    entity = _ENTITY.match(value)
    if entity:
        other = None if entity[1].upper() == "GPU" else f"{entity[1]} {entity[2]}"
        gpus = (int(entity[2]),) if other is None else None
        test.statuses.append((entity[3].lower(), gpus, other, number))
        return
    status = _STATUS.match(value)
    if status:
        listed = tuple(int(i) for i in re.findall(r"\d+", status[3])) if status[3] else None
        test.statuses.append((status[1].lower(), listed, None, number))


def _more_indices(test: _Test, value: str) -> None:
    if test.statuses and test.statuses[-1][1] is not None:
        status, gpus, other, number = test.statuses[-1]
        more = tuple(int(i) for i in re.findall(r"\d+", value))
        test.statuses[-1] = (status, (gpus or ()) + more, other, number)


def _text_row(
    tests: list[_Test], note: str, value: str, about: int | None, number: int, *, new: bool
) -> None:
    """Text in pieces of 45 characters; a piece is joined to the one before without a space."""
    if not tests:
        return
    piece = value[:_WRAP] if len(value) >= _WRAP else value
    test = tests[-1]
    if note == "info":
        if new or not test.info:
            test.info.append((piece, about))
        else:
            test.info[-1] = (test.info[-1][0] + piece, about)
    elif new or not test.errors:
        test.errors.append((DiagError(piece), about, number))
    else:
        error, _, first = test.errors[-1]
        test.errors[-1] = (DiagError(error.text + piece), about, first)


def _results(tests: list[_Test]) -> Iterator[DiagResult]:
    for test in tests:
        statuses = test.statuses
        by_entity = [s for s in statuses if s[1] is not None or s[2] is not None]
        shown = by_entity or statuses
        errors = [(DiagError(e.text.rstrip()), about, n) for e, about, n in test.errors]
        for status, gpus, other, number in shown:
            own = tuple(
                e
                for e, about, _ in errors
                if gpus is not None and _concerns(e, about, gpus, status)
            )
            if gpus is None:
                own = tuple(e for e, _, _ in errors)
            info = tuple(t for t, about in test.info if about is None or (gpus and about in gpus))
            if status == "fail" and gpus and len(gpus) > 1:
                for gpu in gpus:  # each failing device with the words that name it
                    mine = tuple(e for e, about, _ in errors if _concerns(e, about, (gpu,), status))
                    yield DiagResult(
                        test.name, test.category, status, (gpu,), line(number), mine, info
                    )
                continue
            clean = "skip" if status == "not run" else status
            yield DiagResult(
                test.name, test.category, clean, gpus, line(number), own, info, other_entity=other
            )
        summary = statuses[0][0] if statuses else ""
        if (
            by_entity
            and summary == "fail"
            and not any(s[0] == "fail" for s in by_entity)
            and statuses[0][1] is None
        ):
            yield DiagResult(
                test.name,
                test.category,
                "fail",
                None,
                line(test.number),
                tuple(e for e, _, _ in errors),
            )


def _concerns(error: DiagError, about: int | None, gpus: tuple[int, ...], status: str) -> bool:
    if about is not None:
        return about in gpus
    words = {int(n) for n in re.findall(r"\bGPUs? ?(\d{1,3})\b", error.text)}
    return bool(words & set(gpus)) if words else status == "fail"
