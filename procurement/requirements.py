"""What must be reached, as criteria with a figure: checked, pooled over plans, and compared with an answer. Pure.

A criterion says at least (throughput, memory), at most (latency, power) or by a day (delivery). An answer gives a
value, or only says that it is met; a value counts before the word. What is not said is neither met nor missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any

from core.errors import InputError
from core.imports import parse_date
from core.messages import Message, msg
from procurement.per import EARLIER, SERVER_AS_HASHED, Per

MOST = 40  # criteria of one RFQ
PLACES = Decimal("0.000001")


class RequirementKind(StrEnum):
    THROUGHPUT = "throughput"
    MEMORY = "memory"
    LATENCY = "latency"
    POWER = "power"
    DELIVERY = "delivery"


class Verdict(StrEnum):
    """How a quote stands to a criterion or a term."""

    MEETS = "meets"
    MISSES = "misses"
    UNSAID = "unsaid"


AT_MOST = frozenset({RequirementKind.LATENCY, RequirementKind.POWER})
NAMED = frozenset({RequirementKind.THROUGHPUT, RequirementKind.LATENCY})  # need a benchmark
# kind: units that are offered; a throughput may be told in any unit
UNITS: dict[RequirementKind, tuple[str, ...]] = {
    RequirementKind.THROUGHPUT: ("tokens/s", "samples/s", "requests/s", "Tflop/s", "GB/s"),
    RequirementKind.MEMORY: ("GB", "TB"),
    RequirementKind.LATENCY: ("ms", "s"),
    RequirementKind.POWER: ("W", "kW"),
    RequirementKind.DELIVERY: (),
}
PER: dict[RequirementKind, tuple[Per, ...]] = {
    RequirementKind.THROUGHPUT: (Per.WHOLE, Per.SERVER, Per.CARD),
    RequirementKind.MEMORY: (Per.CARD, Per.SERVER),
    RequirementKind.LATENCY: (Per.WHOLE,),
    RequirementKind.POWER: (Per.SERVER, Per.CARD, Per.WHOLE),
    RequirementKind.DELIVERY: (Per.WHOLE,),
}


@dataclass(frozen=True, slots=True)
class Required:
    """One criterion. `value` in `unit`, or `day` for a delivery; `lines` are positions of the RFQ (none: all)."""

    kind: RequirementKind
    value: Decimal | None = None
    unit: str = ""
    per: Per = Per.WHOLE
    day: date | None = None
    benchmark: str = ""
    lines: tuple[int, ...] = ()
    from_plan: bool = False

    def to_json(self) -> dict[str, Any]:
        """As hashed and as kept in the trail."""
        return {
            "kind": str(self.kind),
            "value": None if self.value is None else plain(self.value),
            "unit": self.unit,
            "per": SERVER_AS_HASHED if self.per == Per.SERVER else str(self.per),
            "day": None if self.day is None else self.day.isoformat(),
            "benchmark": self.benchmark,
            "lines": list(self.lines),
        }


def plain(value: Decimal) -> str:
    """Without trailing zeros and without powers of ten."""
    return f"{value.normalize():f}"


def check_requirements(
    given: Iterable[Mapping[str, Any]], positions: Iterable[int]
) -> tuple[Required, ...]:
    """Criteria of an RFQ whose lines have `positions`. Raises InputError naming the row, its value and limit."""
    rows = list(given)
    if len(rows) > MOST:
        raise InputError(
            "requirements",
            msg("%(value)s criteria; at most %(limit)s", value=len(rows), limit=MOST),
            value=len(rows), limit=MOST,
        )  # fmt: skip
    known = set(positions)
    return tuple(_required(number, row, known) for number, row in enumerate(rows, 1))


def _refuse(number: int, field: str, value: Any, limit: str) -> InputError:
    return InputError(
        "requirements",
        msg("Criterion %(line)s: %(field)s is %(value)s; it must be: %(limit)s", line=number, field=field,
            value=str(value)[:100], limit=limit),
        value=value, limit=limit,
    )  # fmt: skip


def _required(number: int, row: Mapping[str, Any], known: set[int]) -> Required:
    kind_told = str(row.get("kind") or "")
    if kind_told not in set(RequirementKind):
        raise _refuse(number, "kind", kind_told, ", ".join(RequirementKind))
    kind = RequirementKind(kind_told)
    benchmark = " ".join(str(row.get("benchmark") or "").split())
    if kind in NAMED and not benchmark:
        raise _refuse(number, "benchmark", "–", "1 … 160")
    if len(benchmark) > 160:
        raise _refuse(number, "benchmark", f"{len(benchmark)}", "1 … 160")
    lines = row.get("lines") or ()
    for position in lines:
        if position not in known:
            raise _refuse(number, "lines", position, ", ".join(str(one) for one in sorted(known)))
    found = Required(
        kind,
        benchmark=benchmark,
        lines=tuple(sorted(set(lines))),
        from_plan=bool(row.get("from_plan")),
    )
    if kind == RequirementKind.DELIVERY:
        day = row.get("day")
        if not isinstance(day, date):
            raise _refuse(number, "day", day, "2027-03-31")
        return replace(found, day=day)
    told = str(row.get("per") or PER[kind][0])
    per = EARLIER.get(told, told)
    if per not in PER[kind]:
        raise _refuse(number, "per", per, ", ".join(PER[kind]))
    unit = str(row.get("unit") or "").strip()
    free = kind == RequirementKind.THROUGHPUT
    if not unit or len(unit) > 24 or (not free and unit not in UNITS[kind]):
        raise _refuse(number, "unit", unit or "–", ", ".join(UNITS[kind]))
    value = figure(row.get("value"))
    if value is None:
        raise _refuse(number, "value", row.get("value"), "> 0, 6 decimal places, as text")
    return replace(found, value=value, unit=unit, per=Per(per))


def figure(told: Any) -> Decimal | None:
    """A figure above 0 with at most six places, exactly as told; None for anything else, a float included."""
    if isinstance(told, float | bool) or told in (None, ""):
        return None
    try:
        number = Decimal(str(told))
    except ArithmeticError:
        return None
    if (
        not number.is_finite()
        or not 0 < number < Decimal(10) ** 12
        or number != number.quantize(PLACES)
    ):
        return None
    return number


def rounded(value: float, *, up: bool = False) -> Decimal:
    """`value` to three significant digits, as a plan's figure is told."""
    number = Decimal(repr(value))
    step = Decimal(1).scaleb(number.adjusted() - 2)
    found = (number / step).to_integral_value("ROUND_CEILING" if up else "ROUND_HALF_EVEN") * step
    return found.quantize(PLACES) if found < 1 else found


def pooled(rows: Sequence[Required], positions: Sequence[int]) -> tuple[Required, ...]:
    """Criteria of several plans as one list, one row for each kind, benchmark, unit and scope.

    Throughput of the whole adds up. Any other figure, and a day, is of the thing itself: equal ones are one row for
    their lines together, different ones stay apart, lest they ask for a card that none of the plans rests on. A
    criterion that comes from every line is told for all of them.
    """
    found: dict[tuple[Any, ...], Required] = {}
    for row in rows:
        alike = () if _adds_up(row) else (row.value, row.day)
        key = (row.kind, row.benchmark, row.unit, row.per, *alike)
        before = found.get(key)
        found[key] = row if before is None else _joined(before, row)
    everything = set(positions)
    order = list(RequirementKind)
    return tuple(
        replace(row, lines=() if set(row.lines) == everything else row.lines)
        for row in sorted(found.values(), key=lambda row: order.index(row.kind))
    )


def _adds_up(row: Required) -> bool:
    return row.kind == RequirementKind.THROUGHPUT and row.per == Per.WHOLE


def _joined(one: Required, other: Required) -> Required:
    lines = tuple(sorted({*one.lines, *other.lines}))
    if not _adds_up(one):
        return replace(one, lines=lines)
    if one.value is None or other.value is None:
        raise ValueError("a criterion without a figure")
    return replace(one, value=one.value + other.value, lines=lines)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a vendor says of one criterion."""

    value: Decimal | None = None
    day: date | None = None
    stated: bool | None = None
    note: str = ""


def verdict(asked: Required, answer: Answered | None, *, comes_on: date | None = None) -> Verdict:
    """Computed where a value (a day) is given, else what the vendor says; silence is neither.

    A delivery that the vendor does not answer is judged by the day on which its goods come, if that is given.
    """
    if asked.day is not None and comes_on is not None and _silent(answer):
        return Verdict.MEETS if comes_on <= asked.day else Verdict.MISSES
    if answer is None:
        return Verdict.UNSAID
    if asked.day is not None and answer.day is not None:
        return Verdict.MEETS if answer.day <= asked.day else Verdict.MISSES
    if asked.value is not None and answer.value is not None:
        if asked.kind in AT_MOST:
            return Verdict.MEETS if answer.value <= asked.value else Verdict.MISSES
        return Verdict.MEETS if answer.value >= asked.value else Verdict.MISSES
    if answer.stated is None:
        return Verdict.UNSAID
    return Verdict.MEETS if answer.stated else Verdict.MISSES


def _silent(answer: Answered | None) -> bool:
    return answer is None or (answer.day is None and answer.stated is None)


def contradicts(asked: Required, answer: Answered | None) -> bool:
    """Whether the vendor says one thing and its value another."""
    if answer is None or answer.stated is None:
        return False
    return (verdict(asked, answer) == Verdict.MEETS) != answer.stated


def check_answers(
    given: Iterable[Mapping[str, Any]], asked: Mapping[int, Required]
) -> dict[int, Answered]:
    """Answers by the criterion's number. Raises InputError naming the criterion, its value and the limit."""
    found: dict[int, Answered] = {}
    for row in given:
        number = row.get("requirement")
        if not isinstance(number, int) or isinstance(number, bool) or number not in asked:
            limit = ", ".join(str(one) for one in sorted(asked)) or "–"
            raise InputError(
                "answers",
                msg("There is no criterion %(value)s; there are: %(limit)s", value=str(number), limit=limit),
                value=number, limit=limit,
            )  # fmt: skip
        if number in found:
            raise InputError(
                "answers", msg("Criterion %(value)s is answered twice", value=number), value=number
            )
        answer = _answered(number, row, asked[number])
        if answer != Answered():
            found[number] = answer
    return found


def _answered(number: int, row: Mapping[str, Any], asked: Required) -> Answered:
    told, day, stated = row.get("value"), row.get("day"), row.get("meets")
    value = None
    if told not in (None, ""):
        value, unit = figure(told), str(row.get("unit") or "")
        if asked.day is not None or value is None or not _same_unit(unit, asked.unit):
            raise _wrong(number, f"{told} {unit}".strip(), asked)
    if day is not None and (asked.day is None or not isinstance(day, date)):
        raise _wrong(number, day, asked)
    if stated is not None and not isinstance(stated, bool):
        raise _wrong(number, stated, asked)
    return Answered(value, day, stated, " ".join(str(row.get("note") or "").split())[:300])


def _same_unit(told: str, asked: str) -> bool:
    """Whether `told` is the asked unit or none. Capitals count only where they tell bytes from bits."""
    if not told or told == asked:
        return True
    return told.casefold() == asked.casefold() and not asked.casefold().endswith("b/s")


def _wrong(number: int, value: Any, asked: Required) -> InputError:
    limit = "2027-03-31" if asked.day is not None else f"> 0 {asked.unit}"
    return InputError(
        "answers",
        msg("Criterion %(line)s: %(value)s is no answer; say a value (%(limit)s), yes or no", line=number,
            value=str(value)[:100], limit=limit),
        value=value, limit=limit,
    )  # fmt: skip


# Commas part groups of three; a unit may follow. "46,5" and "1.2.3" are no figures.
_FIGURE = re.compile(r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d.,])\s*(.*)", re.DOTALL)
_PART = re.compile(r"\s*(\d{1,3})\s*[:：=]\s*(.*?)\s*", re.DOTALL)
MET = frozenset({"yes", "y", "true", "meets", "是", "满足", "符合"})
NOT_MET = frozenset({"no", "n", "false", "misses", "does not", "否", "不满足", "不符合"})


def read_answers(text: str) -> list[dict[str, Any]]:
    """Answers as typed in a table's cell: "1: 45,000 tokens/s; 2: yes; 3: 2027-03-01". A number left open is no answer.

    A unit is kept as it is typed: `check_answers` refuses one that is not asked for. Raises InputError naming the part
    that cannot be read.
    """
    found: list[dict[str, Any]] = []
    for part in re.split(r"[;；\n]", text):
        if not part.strip():
            continue
        match = _PART.fullmatch(part)
        if match is None:
            raise InputError(
                "answers",
                msg("%(field)s: %(value)s is not “number: value, yes or no”", field="answers",
                    value=part.strip()[:100]),
                value=part.strip(),
            )  # fmt: skip
        number, said = int(match[1]), match[2]
        if not said:
            continue
        row: dict[str, Any] = {"requirement": number}
        if said.lower() in MET | NOT_MET:
            row["meets"] = said.lower() in MET
        elif re.fullmatch(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}", said):
            row["day"] = parse_date("answers", said)
        else:
            match = _FIGURE.fullmatch(said)
            # What is no figure stays as it is typed: the check against the criterion refuses it in these words.
            row["value"] = said if match is None else match[1].replace(",", "")
            if match is not None and match[2]:
                row["unit"] = match[2]
        found.append(row)
    return found


def blank_answers(numbers: Iterable[int]) -> str:
    """The cell of a table to fill in."""
    return "; ".join(f"{number}: " for number in numbers).strip()


_WORDS: dict[RequirementKind, dict[Per, Message]] = {
    RequirementKind.THROUGHPUT: {
        Per.WHOLE: msg("Throughput in all: at least %(value)s %(unit)s (%(benchmark)s)"),
        Per.SERVER: msg("Throughput of a server: at least %(value)s %(unit)s (%(benchmark)s)"),
        Per.CARD: msg("Throughput of a card: at least %(value)s %(unit)s (%(benchmark)s)"),
    },
    RequirementKind.MEMORY: {
        Per.CARD: msg("Memory of a card: at least %(value)s %(unit)s"),
        Per.SERVER: msg("Accelerator memory of a server: at least %(value)s %(unit)s"),
    },
    RequirementKind.LATENCY: {
        Per.WHOLE: msg("Latency: at most %(value)s %(unit)s (%(benchmark)s)")
    },
    RequirementKind.POWER: {
        Per.CARD: msg("Power of a card: at most %(value)s %(unit)s"),
        Per.SERVER: msg("Power of a server: at most %(value)s %(unit)s"),
        Per.WHOLE: msg("Power in all: at most %(value)s %(unit)s"),
    },
    RequirementKind.DELIVERY: {Per.WHOLE: msg("Delivered in full by %(day)s")},
}


def words(asked: Required) -> Message:
    """The criterion as a sentence."""
    template = _WORDS[asked.kind][asked.per]
    day = "" if asked.day is None else asked.day.isoformat()
    value = "" if asked.value is None else f"{asked.value.normalize():,f}"
    facts = {"value": value, "unit": asked.unit, "benchmark": asked.benchmark, "day": day}
    return msg(template.template, **{name: text for name, text in facts.items() if text})
