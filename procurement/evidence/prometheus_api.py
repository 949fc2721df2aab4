"""Answers of the Prometheus HTTP API as usage data: mean utilisation by card. Review, not acceptance."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from core.messages import msg
from planning.telemetry_formats.prometheus import Answer, Series, api_series
from planning.telemetry_formats.samples import METRICS
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report

FORMATS = ("prometheus_api_json",)

# Utilisation metrics and what their full scale is.
_SCALES = {
    name: scale for name, (what, scale) in METRICS.items() if what in ("utilization", "sm_activity")
}
_MAX_SERIES = 200_000


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("prometheus_api_json", context, usage=True, review="utilisation_month")
    answer = Answer()
    shown: list[
        tuple[Series, float | None, int, int]
    ] = []  # without points: labels, mean, samples, NaN
    steps: Counter[float] = Counter()
    first: float | None = None
    last: float | None = None
    total, used, highest = 0.0, 0, 0.0
    for series in api_series(_chunks(document), answer):
        if len(shown) >= _MAX_SERIES:
            report.incomplete("too_many_series", msg("The answer holds too many series."))
            break
        values = [v for _, v in series.points if v is not None]
        times = [t for t, _ in series.points]
        for a, b in itertools.pairwise(times):
            if b > a and (b - a in steps or len(steps) < 10_000):
                steps[b - a] += 1
        if times:
            first = min(times[0], first) if first is not None else times[0]
            last = max(times[-1], last) if last is not None else times[-1]
        total, used = total + sum(values), used + len(values)
        highest = max(highest, max(values, default=0.0))
        mean = statistics.fmean(values) if values else None
        shown.append((Series(series.labels, ()), mean, len(times), len(times) - len(values)))
    report.variant = answer.result_type
    step = steps.most_common(1)[0][0] if steps else None
    report.counts |= {
        "series": len(shown),
        "samples": sum(n for _, _, n, _ in shown),
        "nan": sum(n for *_, n in shown),
    }
    if first is not None and last is not None:
        report.metrics |= {
            "first": _stamp(first),
            "last": _stamp(last),
            "step_s": int(step) if step else None,
        }
    expected = (
        round((last - first) / step) + 1 if step and first is not None and last is not None else 1
    )
    report.counts["missing_steps"] = sum(max(0, expected - n) for _, _, n, _ in shown)
    scale = _scale(report, shown, highest)
    if not answer.whole:
        report.incomplete(
            "truncated_json", msg("The JSON is cut off or damaged; only whole series were read.")
        )
    if answer.status != "success":
        report.usage = False
        report.incomplete(
            "query_failed",
            msg("The query failed: %(error)s", error=answer.error or answer.status or "?"),
        )
    _review(report, answer, shown, scale, expected, (total, used))
    return report


def _chunks(document: Document) -> Iterator[bytes]:
    if document.plain:
        return document.source.byte_chunks()
    return iter([document.text().encode()])


def _stamp(seconds: float) -> str | None:
    if not 0 <= seconds < 253_402_300_800:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _scale(
    report: Report, shown: list[tuple[Series, float | None, int, int]], highest: float
) -> float | None:
    """What full utilisation is in these values; None when they are no utilisation or it cannot be known."""
    names = {series.labels.get("__name__", "") for series, *_ in shown}
    name = names.pop() if len(names) == 1 else ""
    if name in _SCALES:
        if name == "DCGM_FI_DEV_GPU_UTIL":
            report.caution(
                "gpu_util_is_coarse",
                msg(
                    "GPU_UTIL says that a kernel ran, not how full the card was; prefer GR_ENGINE_ACTIVE."
                ),
            )
        return _SCALES[name]
    if name or names:
        report.caution(
            "not_utilisation", msg("The metric %(name)s is no utilisation.", name=name or "?")
        )
        return None
    if 1.0 < highest <= 100.0:
        report.caution(
            "metric_unnamed",
            msg("A function took the name of the metric away; the values were read as per cent."),
        )
        return 100.0
    report.caution(
        "unit_unknown", msg("The metric has no name and its values do not tell its unit.")
    )
    return None


def _review(
    report: Report, answer: Answer, shown: list[tuple[Series, float | None, int, int]],
    scale: float | None, expected: int, sums: tuple[float, int],
) -> None:  # fmt: skip
    policy = report.context.policy
    means = [mean for _, mean, _, _ in shown if mean is not None]
    if scale is not None and means:
        factor = 100.0 / scale
        report.metrics |= {
            "mean_util_pct_per_gpu": {
                name: round(mean * factor, 2) for name, mean in _named(shown)
            },
            "mean_util_pct_fleet": round(statistics.fmean(means) * factor, 2),
            "sample_weighted_mean_pct": round(sums[0] / sums[1] * factor, 2),
        }
    if report.counts["nan"]:
        report.caution(
            "nan_samples_ignored",
            msg("%(count)s samples are no number and were left out.", count=report.counts["nan"]),
        )
    if report.counts["missing_steps"]:
        report.caution(
            "gap_in_series",
            msg(
                "%(count)s samples are missing: whether idle or down is not known; they were left out.",
                count=report.counts["missing_steps"],
            ),
        )
    for text in answer.warnings:
        report.caution("server_warning", msg("The server warns: %(text)s", text=text))
    wanted = report.context.order.get("quantity")
    delivered = wanted if isinstance(wanted, int) and wanted > 0 else len(shown)
    if delivered > len(shown):
        report.caution(
            "series_missing",
            msg(
                "%(shown)s of %(wanted)s delivered cards have a series.",
                shown=len(shown),
                wanted=delivered,
            ),
        )
    covered = (
        sum(n - nan for _, _, n, nan in shown) / (expected * delivered)
        if delivered and expected
        else 0.0
    )
    report.metrics["sample_coverage"] = round(min(1.0, covered), 4)
    partial = any("partial" in text.lower() for text in answer.warnings)
    provable = (
        answer.whole
        and answer.status == "success"
        and answer.result_type == "matrix"
        and not partial
    )
    if answer.result_type in ("vector", "scalar", "string"):
        report.caution("snapshot", msg("The answer holds one moment, not a period."))
    if (
        not provable
        or scale is None
        or not means
        or expected < 2
        or covered < policy.require("min_sample_coverage")
    ):
        report.review_verdict = "inconclusive"
    elif report.metrics["mean_util_pct_fleet"] < policy.require("oversized_below_pct"):
        report.review_verdict = "oversized"
    else:
        report.review_verdict = "ok"


def _named(shown: list[tuple[Series, float | None, int, int]]) -> list[tuple[str, float]]:
    """Means by the shortest label that tells the cards apart."""
    labels = [series.labels for series, *_ in shown]
    for keys in (("gpu",), ("Hostname", "gpu"), ("instance", "gpu"), ("UUID",)):
        names = ["/".join(label.get(key, "") for key in keys) for label in labels]
        if len(set(names)) == len(names) and all(names):
            break
    else:
        names = [str(i) for i in range(len(shown))]
    return [
        (name, mean) for name, (_, mean, _, _) in zip(names, shown, strict=True) if mean is not None
    ]
