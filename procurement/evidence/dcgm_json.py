"""`dcgmi diag -j`, DCGM 2.x to 4.x. NVIDIA publishes no schema for it; the shapes are those of Diag.cpp at the tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from core.messages import msg
from planning.telemetry_formats.values import integer
from procurement.evidence.bounded import JsonDocument, documents, items, mapping, objects
from procurement.evidence.dcgm_rules import MACHINE, DiagError, DiagResult, judge
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report
from procurement.evidence.types import Severity, Verdict

FORMATS = ("dcgmi_diag_json",)

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_MULTI_NODE = "DCGM Multi-Node Diagnostic"
_GPU_GROUP = 1


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("dcgmi_diag_json", context)
    found = documents(document.text(), (*_ROOTS, _MULTI_NODE, "runtime_error"))
    if not found:
        report.incomplete("unreadable_json", msg("The JSON could not be read."))
        return report
    runs = [run for each in found for run in _runs(report, each)]
    results: list[DiagResult] = []
    gpus: set[int] = set()
    places = _machines(runs)
    repeated = len(runs) > len(set(places))
    for number, ((path, run), place) in enumerate(zip(runs, places, strict=True), 1):
        iteration = number if repeated else None
        _describe(report, run)
        here = set(_entities(report, run, place * MACHINE))
        for result in _results(report, run, path, iteration):
            results.append(_placed(result, place * MACHINE, here, alone=len(set(places)) == 1))
        gpus |= here
    if not results and report.complete:
        report.incomplete("no_results", msg("The diagnostic holds no results."))
    judge(report, results, gpus)
    _summaries(report, runs, results)
    _iterations(report, results, len(runs) if repeated else 1)
    _cautions(report, runs, results)
    return report


def _machines(runs: list[tuple[str, Mapping[str, Any]]]) -> list[int]:
    """The machine of each run, numbered: documents that know one index by two serial numbers are of two machines."""
    known: list[dict[int, str]] = []
    found = []
    for _, run in runs:
        serials = dict(_serials(run))
        for place, others in enumerate(known):
            if all(others.get(index, serial) == serial for index, serial in serials.items()):
                others |= serials
                found.append(place)
                break
        else:
            known.append(serials)
            found.append(len(known) - 1)
    return found


def _serials(run: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    _, root = _root(run)
    for group in [*objects(run.get("entity_groups")), *objects(root.get("entity_groups"))]:
        for entity in objects(group.get("entities")):
            index, serial = integer(entity.get("entity_id")), _text(entity.get("serial_num"))
            if index is not None and serial and group.get("entity_group", "GPU") == "GPU":
                yield index, serial
    for holder in (run, root):
        for key, value in mapping(holder.get("GPU Device Serials")).items():
            index, serial = integer(str(key)), _text(value)
            if index is not None and serial:
                yield index, serial


def _placed(result: DiagResult, offset: int, here: set[int], *, alone: bool) -> DiagResult:
    """The result among the devices of its own machine."""
    if alone:
        return result
    if result.gpus is None:
        return replace(result, gpus=tuple(sorted(here))) if result.other_entity is None else result
    return replace(result, gpus=tuple(g + offset for g in result.gpus))


def _runs(report: Report, document: JsonDocument) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not document.sound:
        report.incomplete(
            "damaged_json", msg("The JSON is cut off or damaged; only what came before was read.")
        )
    if document.lines_before:
        report.counts["garbage_prefix_lines"] = document.lines_before
    value = document.value
    for i, top in enumerate(items(value) if isinstance(value, list) else [value]):
        base = f"$[{i}]" if isinstance(value, list) else "$"
        wrapper = mapping(top)
        if "iterations" in wrapper:
            report.variant = "iterations"
            report.metrics["overall_result"] = str(wrapper.get("Overall Result", ""))[:40]
            for j, run in enumerate(objects(wrapper["iterations"])):
                if not any(root in run for root in _ROOTS):
                    report.incomplete("part_missing", msg("An iteration holds no diagnostic."))
                yield f"{base}.iterations[{j}]", run
        elif _MULTI_NODE in wrapper:
            _multi_node(report, wrapper[_MULTI_NODE])
        else:
            yield base, wrapper


def _multi_node(report: Report, value: Any) -> None:
    """Its results are not bound to devices in any way that was seen: a failure counts, a pass needs a person."""
    report.variant = "multi-node"
    stack, statuses = [value], []
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            statuses += [
                str(v).lower()
                for k, v in node.items()
                if k in ("status", "result", "overall_result")
            ]
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    if "fail" in statuses:
        report.finding(
            "multi_node_fail",
            Severity.BLOCKING,
            msg("The multi-node diagnostic reports a failure."),
        )
    report.review_needed(
        "multi_node", msg("Multi-node results name no devices: a person must read them.")
    )


def _root(run: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return next(((key, mapping(run[key])) for key in _ROOTS if key in run), ("", {}))


def _describe(report: Report, run: Mapping[str, Any]) -> None:
    key, root = _root(run)
    metadata = mapping(run.get("metadata"))
    version = metadata.get("version") or run.get("version") or root.get("version")
    driver = (
        metadata.get("Driver Version Detected")
        or run.get("Driver Version Detected")
        or root.get("Driver Version Detected")
    )
    report.tool_version = str(version) if version else report.tool_version
    report.driver_version = str(driver) if driver else report.driver_version
    schema = "dcgm4" if key == _ROOTS[0] else "dcgm2-3"
    report.variant = (
        f"{schema} iterations" if report.variant == "iterations" else report.variant or schema
    )
    for holder in (run, root):
        for name in ("runtime_error", "Runtime Error"):
            if name in holder:
                report.incomplete(
                    "runtime_error",
                    msg("The diagnostic could not run: %(error)s", error=str(holder[name])[:300]),
                )


def _entities(report: Report, run: Mapping[str, Any], offset: int) -> Iterator[int]:
    """The devices that the file lists, with their serials."""
    _, root = _root(run)
    groups = [*objects(run.get("entity_groups")), *objects(root.get("entity_groups"))]
    for group in groups:
        if (
            integer(group.get("entity_group_id")) not in (None, _GPU_GROUP)
            or group.get("entity_group", "GPU") != "GPU"
        ):
            continue
        for entity in objects(group.get("entities")):
            index = integer(entity.get("entity_id"))
            if index is None:
                continue
            log = report.device(index + offset, index=index)
            log.serial = _text(entity.get("serial_num")) or log.serial
            if entity.get("device_id"):
                log.figures["device_id"] = str(entity["device_id"])
            yield index + offset
    for holder in (run, root):
        serials = mapping(holder.get("GPU Device Serials"))
        ids = items(holder.get("GPU Device IDs"))
        for key, serial in serials.items():
            index = integer(str(key))
            if index is not None:
                report.device(index + offset, index=index).serial = _text(serial)
                yield index + offset
        for index, device_id in enumerate(ids[:1024]):
            report.device(index + offset, index=index).figures["device_id"] = str(device_id)
            yield index + offset


def _results(
    report: Report, run: Mapping[str, Any], path: str, iteration: int | None
) -> Iterator[DiagResult]:
    key, root = _root(run)
    for c, category in enumerate(objects(root.get("test_categories"))):
        _expect(report, category, "tests")
        for t, test in enumerate(objects(category.get("tests"))):
            _expect(report, test, "results")
            name = str(test.get("name", "?"))[:80]
            for r, result in enumerate(objects(test.get("results"))):
                where = f"{path}['{key}'].test_categories[{c}].tests[{t}].results[{r}]"
                status = str(result.get("status", "")).lower()
                if status.startswith("not run"):
                    status = "skip"
                if status not in ("pass", "fail", "skip", "warn"):
                    report.incomplete(
                        "unknown_status", msg("A result has no status that is known.")
                    )
                    continue
                gpus, other = _about(result)
                yield DiagResult(
                    test=name,
                    category=str(category.get("category", "")),
                    status=status,
                    gpus=gpus,
                    where=where,
                    errors=tuple(_errors(result.get("warnings"))),
                    info=tuple(
                        str(i)
                        for i in (
                            [result["info"]]
                            if isinstance(result.get("info"), str)
                            else items(result.get("info"))
                        )
                    ),
                    iteration=iteration,
                    other_entity=other,
                )


def _summaries(
    report: Report, runs: list[tuple[str, Mapping[str, Any]]], results: list[DiagResult]
) -> None:
    """A summary that says Fail over results that do not: the failing result is not in the file."""
    failed = {r.test for r in results if r.status in ("fail", "warn")}
    told = [
        str(test.get("name", "?"))[:80]
        for _, run in runs
        for category in objects(_root(run)[1].get("test_categories"))
        for test in objects(category.get("tests"))
        if str(mapping(test.get("test_summary")).get("status", "")).lower() == "fail"
    ]
    lost = [name for name in told if name not in failed]
    if report.metrics.get("overall_result", "").lower() == "fail" and not failed:
        lost.append("Overall Result")
    for name in lost:
        report.finding(
            f"summary_fails:{name}",
            Severity.BLOCKING,
            msg("The summary of %(test)s says Fail; the result behind it is missing.", test=name),
        )


def _expect(report: Report, holder: Mapping[str, Any], key: str) -> None:
    if not items(holder.get(key)):
        report.incomplete("part_missing", msg("A part of the diagnostic has no %(key)s.", key=key))


def _about(result: Mapping[str, Any]) -> tuple[tuple[int, ...] | None, str | None]:
    """(GPU indices, name of another entity). 4.x has entity ids, 3.x gpu_id as string or number, 2.x gpu_ids."""
    if "entity_id" in result:
        index = integer(result["entity_id"])
        group = result.get("entity_group_id", _GPU_GROUP)
        if group == _GPU_GROUP and index is not None:
            return (index,), None
        return None, f"{result.get('entity_group', 'entity')} {result['entity_id']}"[:80]
    value = result.get("gpu_id", result.get("gpu_ids"))
    if value is None:
        return None, None
    values = [integer(part) for part in str(value).split(",")]
    return tuple(v for v in values if v is not None), None


def _errors(value: Any) -> Iterator[DiagError]:
    for warning in [value] if isinstance(value, str | dict) else items(value):
        if isinstance(warning, dict):
            text = warning.get("warning") or warning.get("warnings") or ""
            number = integer(warning.get("error_id"))
            yield DiagError(
                str(text),
                None if number is None or number < 0 else number,
                integer(warning.get("error_category")),
                integer(warning.get("error_severity")),
            )
        elif isinstance(warning, str) and warning.strip():
            yield DiagError(warning)


def _iterations(report: Report, results: list[DiagResult], runs: int) -> None:
    if runs < 2 and "iterations" not in report.variant:
        return
    failed = {r.iteration for r in results if r.status == "fail"}
    report.counts |= {
        "iterations": runs,
        "iterations_fail": len(failed),
        "iterations_pass": runs - len(failed),
    }
    if failed:
        report.incomplete(
            "iterations_aborted_on_failure",
            msg(
                "The tool stops at the first failing iteration; how many were planned is not in the file."
            ),
        )
    for index, log in report.devices.items():
        bad = {r.iteration for r in results if r.status == "fail" and r.gpus and index in r.gpus}
        if bad and len(bad) < runs:
            log.figures["iterations_failed"] = len(bad)
            report.caution(
                "intermittent",
                msg(
                    "GPU %(index)s passed %(passed)s of %(runs)s iterations.",
                    index=index,
                    passed=runs - len(bad),
                    runs=runs,
                ),
            )


def _cautions(
    report: Report, runs: list[tuple[str, Mapping[str, Any]]], results: list[DiagResult]
) -> None:
    if not runs:
        return
    if report.tool_version is None:
        report.caution("no_tool_version", msg("The file does not say which DCGM wrote it."))
    if any(log.serial is None for log in report.devices.values()):
        report.caution(
            "no_serials",
            msg("Serial numbers are missing: the devices cannot be bound to the delivered ones."),
        )
    without_ids = all(e.error_id is None for r in results for e in r.errors)
    if (
        report.variant.startswith("dcgm2-3")
        and without_ids
        and (report.tool_version or "2.").startswith(("2.", "3.0", "3.1"))
    ):
        report.caution("legacy_schema", msg("This DCGM prints no error ids: its words decide."))
    if not report.devices and Verdict.INCONCLUSIVE not in report.run_verdicts and report.complete:
        report.incomplete("no_devices", msg("The diagnostic names no device."))


def _text(value: Any) -> str | None:
    text = str(value).strip() if value is not None else ""
    return text if text and text.lower() not in ("n/a", "unknown", "none", "0") else None
