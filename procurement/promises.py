"""Throughput that a vendor promises, what benchmarks measured of it, and what the difference is worth. Pure.

The rule of the money: the price of one card (the item's price without tax over its cards) times the shortfall, a
shortfall being 1 - measured / promised and never below 0. A server is as many cards as it holds. The tolerance says
whether a promise counts as kept; the shortfall itself is told in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from core.errors import InputError
from core.messages import Message, msg
from procurement.per import Per

TOLERANCE = Decimal("0.03")  # of a named benchmark, where the contract says nothing else [1]
MOST = 20  # promises on one line
OF = (Per.CARD, Per.SERVER)  # what a promise is of
PLACES = 6  # decimals of a promised or measured figure


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark by name: the units it is told in, and whether a server's figure is the sum of its cards'."""

    slug: str
    label: str  # as people call it; a name, not translated
    units: tuple[
        str, ...
    ]  # the first is the one that readers of evidence use; empty: the vendor's own
    adds_up: bool
    words: tuple[str, ...]  # how a vendor may call it, folded


# FLOP/s in units of 1 Gflop/s. Other units are compared with themselves only.
FLOPS = {"Gflop/s": Decimal(1), "Tflop/s": Decimal(1000), "Pflop/s": Decimal(10) ** 6}
BENCHMARKS: dict[str, Benchmark] = {
    row.slug: row
    for row in (
        Benchmark("hpl", "HPL", tuple(FLOPS), True, ("hpl", "linpack")),
        Benchmark("gpu_burn", "gpu-burn", tuple(FLOPS), True, ("gpuburn",)),
        Benchmark("nccl_busbw", "NCCL all-reduce", ("GB/s",), False,
                  ("nccl", "ncclbusbw", "ncclallreduce", "allreduce", "busbw", "rccl")),
        Benchmark("host_to_device", "Host to device", ("GB/s",), False, ("hosttodevice", "h2d")),
        Benchmark("device_to_device", "Device to device", ("GB/s",), False, ("devicetodevice", "d2d")),
        Benchmark("mlperf", "MLPerf", ("samples/s", "tokens/s"), True, ("mlperf",)),
        Benchmark("other", "", (), True, ()),
    )
}  # fmt: skip
_WRITTEN = re.compile(
    r"(?P<name>[^:：]+)[:：]\s*(?P<value>\d[\d,]*(?:\.\d+)?)\s*(?P<unit>\S+?)\s*(?:per\s+|/\s*|每\s*)"
    r"(?P<per>card|server|卡|台|服务器)(?P<rest>(?:\s*[,，]\s*[^,，]+)*)\s*",
    re.IGNORECASE,
)
_TOLERANCE = re.compile(r"(?:tolerance|容差)\s*[:：]?\s*(\d+(?:\.\d+)?)\s*%", re.IGNORECASE)
_INFORMATION = frozenset({"for information", "仅供参考"})


def benchmark_of(name: str) -> str:
    """Slug of the benchmark that a vendor calls `name`: "HPL", "MLPerf llama2-70b offline". "other" when unknown."""
    folded = re.sub(r"[\W_]+", "", name.lower())
    if folded in BENCHMARKS:
        return folded
    for row in BENCHMARKS.values():
        if folded in row.words:
            return row.slug
    return "mlperf" if folded.startswith("mlperf") else "other"


def unit_of(unit: str) -> str:
    """`unit` as it is kept: TFLOPS, TFLOP/s and Tflop/s are one."""
    folded = re.sub(r"[\s./]+", "", unit.lower())
    for known in (*FLOPS, "GB/s", "samples/s", "tokens/s"):
        if folded in (re.sub(r"/", "", known.lower()), known.lower().replace("/s", "s")):
            return known
    return unit.strip()


def unit_for(known: Benchmark, told: str) -> str:
    """The unit of a figure of `known`: the one told, else the benchmark's own where all of its units compare.

    Raises InputError: not a unit of the benchmark, none told where it matters, or too long.
    """
    unit = unit_of(checked_text("unit", told, 24))
    comparable = bool(known.units) and all(
        in_unit(Decimal(1), other, known.units[0]) is not None for other in known.units
    )
    if not unit and comparable:
        return known.units[0]
    if not unit:
        raise InputError("unit", msg("Say in which unit the figure of %(name)s is", name=known.label or known.slug),
                         value="", limit=", ".join(known.units) or "1–24")  # fmt: skip
    if known.units and unit not in known.units:
        raise InputError(
            "unit", msg("%(value)s is not one of %(choices)s", value=unit, choices=", ".join(known.units)),
            value=unit, limit=", ".join(known.units),
        )  # fmt: skip
    return unit


def checked_text(field: str, told: str, limit: int) -> str:
    """`told` with single spaces. Raises InputError where it is longer than `limit` characters; nothing is cut."""
    text = " ".join(told.split())
    if len(text) > limit:
        raise InputError(
            field, msg("%(field)s is longer than %(limit)s characters", field=field, limit=limit),
            value=len(text), limit=limit,
        )  # fmt: skip
    return text


def exact_number(field: str, value: Any, *, places: int) -> Decimal:
    """`value` as a number below 1e12 of at most `places` decimals. Raises InputError; nothing is rounded."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise InputError(
            field, msg("%(field)s is %(value)s; allowed: %(limit)s", field=field, value=str(value), limit="1, 1.5"),
            value=str(value), limit="1, 1.5",
        )  # fmt: skip
    if not -(10**12) < number < 10**12:
        raise InputError(
            field, msg("%(field)s is %(value)s; allowed: %(limit)s", field=field, value=str(value), limit="< 1e12"),
            value=str(value), limit="< 1e12",
        )  # fmt: skip
    exponent = number.normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > places:
        raise InputError(
            field, msg("%(field)s is %(value)s; it takes at most %(limit)s decimal places", field=field,
                       value=str(value), limit=places),
            value=str(value), limit=places,
        )  # fmt: skip
    return number.quantize(Decimal(1).scaleb(-places))  # loses nothing


def read_promises(text: str) -> list[dict[str, Any]]:
    """Promises as a vendor types them, one a line or between semicolons, as a service takes them.

    "HPL: 330000 Gflop/s per server; gpu-burn: 45000 Gflop/s per card, tolerance 2 %, for information". Raises
    InputError naming the part that cannot be read.
    """
    found = []
    for part in re.split(r"[;；\n]", text):
        if not part.strip():
            continue
        match = _WRITTEN.fullmatch(part.strip())
        if match is None:
            raise _unreadable(part)
        name = " ".join(match["name"].split())
        row: dict[str, Any] = {
            "benchmark": benchmark_of(name), "name": name, "value": match["value"].replace(",", ""),
            "unit": unit_of(match["unit"]), "blocking": True,
            "per": Per.CARD if match["per"].lower() in ("card", "卡") else Per.SERVER,
        }  # fmt: skip
        for extra in re.split(r"[,，]", match["rest"]):
            word = extra.strip()
            if not word:
                continue
            if tolerance := _TOLERANCE.fullmatch(word):
                row["tolerance_rate"] = str(Decimal(tolerance[1]) / 100)
            elif word.lower() in _INFORMATION:
                row["blocking"] = False
            else:
                raise _unreadable(part)
        found.append(row)
    return found


def _unreadable(part: str) -> InputError:
    return InputError(
        "promises",
        msg("“%(value)s” is not “benchmark: value unit per card” or “… per server”", value=part.strip()),
        value=part.strip(),
    )  # fmt: skip


def written(rows: Iterable[Any]) -> str:
    """Promises as :func:`read_promises` reads them, one a line."""
    lines = []
    for row in rows:
        text = f"{row.name or BENCHMARKS[row.benchmark].label}: {row.value.normalize():f} {row.unit} per {row.per}"
        if row.tolerance_rate != TOLERANCE:
            text += f", tolerance {(row.tolerance_rate * 100).normalize():f} %"
        lines.append(text if row.blocking else f"{text}, for information")
    return "\n".join(lines)


def checked_promises(line: int, given: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Promises of line `line` as columns. Raises InputError naming line, field, value and limit."""
    rows = list(given)
    if len(rows) > MOST:
        raise InputError(
            "promises", msg("Line %(line)s promises %(value)s figures; at most %(limit)s", line=line,
                            value=len(rows), limit=MOST),
            value=len(rows), limit=MOST,
        )  # fmt: skip
    found: list[dict[str, Any]] = []
    seen: set[tuple[str, str, str]] = set()
    for row in rows:
        slug = str(row.get("benchmark") or "other")
        if slug not in BENCHMARKS:
            raise _refused(line, "benchmark", slug, ", ".join(BENCHMARKS))
        known = BENCHMARKS[slug]
        with _on_line(line):
            name = checked_text("name", str(row.get("name") or ""), 120)
        if not name and slug in ("other", "mlperf"):
            raise InputError(
                "name", msg("Line %(line)s: say which benchmark is promised (model, precision, batch)", line=line)
            )  # fmt: skip
        with _on_line(line):
            unit = unit_for(known, str(row.get("unit") or ""))
        per = str(row.get("per") or "")
        if per not in OF:
            raise _refused(line, "per", per, ", ".join(OF))
        with _on_line(line):
            value = exact_number("value", row.get("value"), places=PLACES)
        if value <= 0:
            raise _refused(line, "value", str(value), "> 0")
        rate = row.get("tolerance_rate")
        with _on_line(line):
            tolerance = (
                TOLERANCE if rate in (None, "") else exact_number("tolerance_rate", rate, places=5)
            )
        if not 0 <= tolerance <= Decimal("0.5"):
            raise _refused(line, "tolerance_rate", str(tolerance), "0–0.5")
        key = (slug, name.lower() if slug in ("other", "mlperf") else "", per)
        if key in seen:
            raise InputError(
                "benchmark", msg("Line %(line)s promises %(value)s twice", line=line, value=name or known.label),
                value=name or slug,
            )  # fmt: skip
        seen.add(key)
        found.append(
            {"benchmark": slug, "name": name, "value": value, "unit": unit, "per": per,
             "tolerance_rate": tolerance, "blocking": bool(row.get("blocking", True))}
        )  # fmt: skip
    return found


def _refused(line: int, field: str, value: str, limit: str) -> InputError:
    return InputError(
        field, msg("Line %(line)s: %(field)s is %(value)s; allowed: %(limit)s", line=line, field=field, value=value,
                   limit=limit),
        value=value, limit=limit,
    )  # fmt: skip


@contextmanager
def _on_line(line: int) -> Iterator[None]:
    """An InputError raised within names line `line` too."""
    try:
        yield
    except InputError as error:
        raise InputError(
            error.field, msg("Line %(line)s: %(problem)s", line=line, problem=error.message),
            value=error.value, limit=error.limit,
        ) from None  # fmt: skip


def in_unit(value: Decimal, unit: str, wanted: str) -> Decimal | None:
    """`value` in the unit `wanted`; None when the two cannot be compared."""
    if unit == wanted:
        return value
    if unit in FLOPS and wanted in FLOPS:
        return value * FLOPS[unit] / FLOPS[wanted]
    return None


def shortfall(promised: Decimal, measured: Decimal) -> Decimal:
    """Share of the promise that is missing: 0 when it is kept or more, 1 when nothing was measured of it. [1]"""
    if promised <= 0 or measured < 0:
        raise ValueError("a promise is above 0 and a measured figure not below it")
    return max(Decimal(0), 1 - measured / promised)


def is_kept(share: Decimal, tolerance: Decimal) -> bool:
    """Whether a shortfall of `share` is within the tolerance."""
    return share <= tolerance


def worth(price_of_card: Decimal, cards: int, share: Decimal) -> Decimal:
    """What `share` of `cards` cards is worth, unrounded, in the currency of the price."""
    return price_of_card * cards * share


def told(promised: Decimal, measured: Decimal, unit: str) -> Message:
    """Both figures and their difference: "301000 of 330000 Gflop/s, 8.8 % less"."""
    percent = shortfall(promised, measured) * 100
    return msg(
        "%(measured)s of %(promised)s %(unit)s, %(percent)s %% less",
        measured=_plain(measured), promised=_plain(promised), unit=unit, percent=f"{percent:.1f}",
    )  # fmt: skip


def _plain(value: Decimal) -> str:
    """Four significant digits, whole from 1,000 on."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"
