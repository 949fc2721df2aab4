"""What the approved plans of an RFQ must reach, and how far a quote says that it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.db.models import prefetch_related_objects
from django.utils import translation

from catalog.reference import accelerators
from core.models import Organisation
from core.organisation import organisation
from planning.models import PlanChoice
from planning.study_tables import by_key
from planning.workloads import Kind
from procurement.models import Quote, QuoteLine, RfqLine, RfqRequirement
from procurement.models.quotes import LineKind
from procurement.per import Per
from procurement.promised_answers import Promised, PromisingLine, promised_value
from procurement.requirements import (
    Answered,
    Required,
    RequirementKind,
    Verdict,
    contradicts,
    pooled,
    rounded,
    verdict,
)

ON_TOKENS = frozenset({Kind.ONLINE_INFERENCE.value, Kind.BATCH_INFERENCE.value})
GB, KILO = Decimal(10) ** 9, Decimal(1000)


def planned(lines: Sequence[RfqLine]) -> tuple[Required, ...]:
    """Criteria of the plans behind `lines`, pooled: what the study found for them, memory and power of the accelerator
    that it rests on, the latency that the request sets, the day by which it is needed. What a study does not know is no
    criterion."""
    rows = [row for line in lines for row in _of_line(line)]
    return pooled(rows, [line.position for line in lines])


def _of_line(line: RfqLine) -> list[Required]:
    plan = line.plan
    revision, lines = plan.revision, (line.position,)
    name = benchmark(plan)
    found: list[Required] = []
    rate = _throughput(plan)
    if rate is not None:
        found.append(
            Required(RequirementKind.THROUGHPUT, rate[0], rate[1], Per.WHOLE, benchmark=name,
                     lines=lines, from_plan=True)
        )  # fmt: skip
    known: Any = _estimate(plan).get("accelerator") or accelerators().get(plan.accelerator_slug, {})
    if known.get("hbm_bytes"):
        memory = Decimal(repr(known["hbm_bytes"])) / GB
        found.append(
            Required(RequirementKind.MEMORY, memory.quantize(Decimal("0.001")), "GB", Per.CARD, lines=lines,
                     from_plan=True)
        )  # fmt: skip
    if known.get("tdp"):
        found.append(
            Required(RequirementKind.POWER, rounded(known["tdp"], up=True), "W", Per.CARD, lines=lines,
                     from_plan=True)
        )  # fmt: skip
    if revision.latency_seconds is not None:
        bound = rounded(revision.latency_seconds * 1000)
        found.append(
            Required(RequirementKind.LATENCY, bound, "ms", Per.WHOLE, benchmark=name, lines=lines,
                     from_plan=True)
        )  # fmt: skip
    if revision.need_by is not None:
        found.append(
            Required(RequirementKind.DELIVERY, day=revision.need_by, lines=lines, from_plan=True)
        )
    return found


def _estimate(plan: PlanChoice) -> Mapping[str, Any]:
    """What the study found of the chosen plan; empty where it estimated nothing."""
    if plan.study is None:
        return {}
    found = by_key(plan.study.result or {}).get(plan.plan_key, {})
    return found.get("estimate") or {}


def _throughput(plan: PlanChoice) -> tuple[Decimal, str] | None:
    """What the study expects of all cards of the plan (its P50), and in which unit."""
    figure = (_estimate(plan).get("figures") or {}).get("throughput")
    if not figure or not figure.get("p50") or figure["p50"] <= 0:
        return None
    unit = figure["unit"]
    if unit == "1/s":
        kind = plan.revision.request.kind
        unit = "tokens/s" if kind in ON_TOKENS else "samples/s"
    return rounded(figure["p50"]), unit


def benchmark(plan: PlanChoice) -> str:
    """The request's own workload as the name of a benchmark: model, what is run, precision, lengths. No team, no
    person, no request."""
    workload = plan.revision.workload
    model = workload.get("model") or ""
    if not model and workload.get("parameters"):
        model = f"{workload['parameters']:.3g} parameters"
    with translation.override("en"):
        kind = str(Kind(plan.revision.request.kind).label)
    precision = plan.summary.get("precision") or workload.get("precision") or ""
    lengths = [
        f"{workload[name]:,} {text}"
        for name, text in (("sequence_length", "tokens a sequence"), ("input_tokens", "tokens in"),
                           ("output_tokens", "tokens out"))
        if workload.get(name)
    ]  # fmt: skip
    return ", ".join(str(part) for part in (model, kind, precision, *lengths) if part)[:160]


@dataclass(frozen=True, slots=True)
class Met:
    """One criterion beside what the quote says of it."""

    requirement: RfqRequirement
    answer: Answered | None
    verdict: Verdict
    contradicts: bool  # the vendor says it is met and its value says otherwise, or the reverse
    promised: bool = False  # the value is not the vendor's answer but what it promises on its lines

    def to_json(self) -> dict[str, Any]:
        answer = self.answer
        return {
            "requirement": self.requirement.position,
            "verdict": str(self.verdict),
            "value": None if answer is None or answer.value is None else f"{answer.value:f}",
            "day": None if answer is None or answer.day is None else answer.day.isoformat(),
            "meets": None if answer is None else answer.stated,
            "note": "" if answer is None else answer.note,
            "contradicts": self.contradicts,
            "promised": self.promised,
        }


@dataclass(frozen=True, slots=True)
class CriteriaMet:
    """How far a quote reaches what the RFQ asks; empty where the RFQ names no criteria."""

    rows: tuple[Met, ...]

    def _count(self, wanted: Verdict) -> int:
        return sum(row.verdict == wanted for row in self.rows)

    @property
    def meets(self) -> int:
        return self._count(Verdict.MEETS)

    @property
    def misses(self) -> int:
        return self._count(Verdict.MISSES)

    @property
    def unsaid(self) -> int:
        return self._count(Verdict.UNSAID)

    @property
    def complies(self) -> bool | None:
        """True: every criterion is met; False: one is missed; None: none is missed, but not all are answered."""
        if self.misses:
            return False
        return None if self.unsaid else True

    def to_json(self) -> dict[str, Any]:
        return {
            "complies": self.complies,
            "meets": self.meets,
            "misses": self.misses,
            "unsaid": self.unsaid,
            "rows": [row.to_json() for row in self.rows],
        }


def criteria_met(quote: Quote, org: Organisation | None = None) -> CriteriaMet:
    """Each criterion of the RFQ with the quote's answer; a delivery without one is judged by the lead time, on the
    clock of `org` (read anew where it is not given). The caller has asked who may read the quote."""
    return criteria_met_by([quote], org)[quote.pk]


def criteria_met_by(
    quotes: Iterable[Quote], org: Organisation | None = None
) -> dict[int, CriteriaMet]:
    """`criteria_met` of many quotes, in five queries more than for none at most."""
    rows = list(quotes)
    prefetch_related_objects(rows, "answers", "rfq__requirements")
    if rows and org is None:
        org = organisation()
    promising = _promising(rows)
    return {quote.pk: _met(quote, org, promising.get(quote.pk, [])) for quote in rows}


def _promising(quotes: Sequence[Quote]) -> dict[int, list[PromisingLine]]:
    """Answering lines with the throughput they promise, by quote; nothing is read where no throughput is asked."""
    ids = [
        quote.pk
        for quote in quotes
        if any(row.kind == RequirementKind.THROUGHPUT for row in quote.rfq.requirements.all())
    ]
    if not ids:
        return {}
    found: dict[int, list[PromisingLine]] = {}
    lines = (
        QuoteLine.objects.filter(quote__in=ids, alternative_to=None)
        .exclude(rfq_line=None)
        .select_related("rfq_line")
        .prefetch_related("promises")
    )
    for line in lines:
        if line.rfq_line is None:
            continue
        promises = tuple(
            Promised(row.benchmark, row.name, row.value, row.unit, Per(row.per))
            for row in line.promises.all()
        )
        found.setdefault(line.quote_id, []).append(
            PromisingLine(
                line.rfq_line.position, line.quantity, line.accelerators_per_item,
                line.kind == LineKind.SERVER, promises,
            )
        )  # fmt: skip
    return found


def _met(quote: Quote, org: Organisation | None, promising: list[PromisingLine]) -> CriteriaMet:
    answers = {row.requirement_id: row.said for row in quote.answers.all()}
    found = []
    for requirement in quote.rfq.requirements.all():
        asked, answer = requirement.asked, answers.get(requirement.pk)
        comes_on = None if asked.day is None else quote.comes_on(quote.rfq.judged_on(org))
        promised = None
        if answer is None or answer.value is None:
            promised = promised_value(asked, promising)
        if promised is not None:
            answer = replace(answer or Answered(), value=promised)
        reached = verdict(asked, answer, comes_on=comes_on)
        found.append(
            Met(requirement, answer, reached, contradicts(asked, answer), promised is not None)
        )
    return CriteriaMet(tuple(found))
