"""Which delivery promises vendors held, from the newest frozen snapshot of each review."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from statistics import median

from planning.models.calibration import BENCHMARK, MeasuredOutcome
from planning.models.reviews import ReviewSnapshot

LATEST = 12  # reviews looked back on


@dataclass(frozen=True, slots=True)
class Promise:
    """How one vendor kept its days."""

    vendor: str
    due: int  # order lines promised and received
    held: int
    days_late: float | None  # mean of the late ones; None: none was late


def promises() -> list[Promise]:
    """By vendor; an order line counts once, as the newest review knows it."""
    lines: dict[tuple[str, str], tuple[str, date, date]] = {}
    snapshots = ReviewSnapshot.objects.order_by("-as_of").values_list("data", flat=True)[:LATEST]
    for data in snapshots:
        for order in data.get("orders", ()):
            key = (order["order"], order["accelerator"])
            if key in lines or not order["promised_on"] or not order["first_received_on"]:
                continue
            promised, received = (
                date.fromisoformat(order[name]) for name in ("promised_on", "first_received_on")
            )
            lines[key] = (order["vendor"], promised, received)
    late: dict[str, list[int]] = defaultdict(list)
    for vendor, promised, received in lines.values():
        late[vendor].append((received - promised).days)
    found = []
    for vendor, days in sorted(late.items()):
        over = [n for n in days if n > 0]
        found.append(
            Promise(
                vendor, len(days), len(days) - len(over), sum(over) / len(over) if over else None
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Benchmark:
    """How the speeds that one vendor promised turned out at acceptance."""

    vendor: str  # empty: acceptances from before the vendor was kept
    promised: int
    held: int  # reached what was promised, less its tolerance
    median: float  # measured ÷ promised [1]


def benchmarks() -> list[Benchmark]:
    """By vendor, from what was measured at acceptances; what was left out with a reason does not count."""
    rows = MeasuredOutcome.objects.filter(work=BENCHMARK, left_out="").values_list(
        "vendor", "estimated", "low", "measured"
    )
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for vendor, estimated, low, measured in rows:
        found[vendor].append((estimated, estimated if low is None else low, measured))
    return [
        Benchmark(
            vendor, len(all_), sum(m >= low for _e, low, m in all_), median(m / e for e, _l, m in all_)
        )
        for vendor, all_ in sorted(found.items())
    ]  # fmt: skip
