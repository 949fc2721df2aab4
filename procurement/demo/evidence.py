"""Files such as the tools write them, for cards that exist only in the demo. The same every time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

HOURS = 72
_WINDOWS = 10  # gpu-burn writes a summary after each tenth
_PER_WINDOW = 6
_GFLOPS = 512_000  # a card's matrix products under this load [Gflop/s]
_STAMP = "%a %b %e %H:%M:%S UTC %Y"


def uuid_of(serial: str) -> str:
    """A device UUID that belongs to this serial number in the demo."""
    digits = f"{random.Random(serial).getrandbits(128):032x}"  # noqa: S311 - an identity, no secret
    cuts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "GPU-" + "-".join(cuts)


def gpu_burn(
    *, model: str, uuids: Sequence[str], end: datetime, faulty: frozenset[int] = frozenset()
) -> bytes:
    """The log of a gpu-burn of 72 hours that ended at `end`; `faulty` indices compute wrong results near the end."""
    draw = random.Random(",".join(uuids))  # noqa: S311 - noise of a demo
    seconds = HOURS * 3600
    start = end - timedelta(seconds=seconds)
    lines = ["Using compare file: compare.ptx", f"Burning for {seconds} seconds."]
    lines += [f"GPU {n}: {model} (UUID: {uuid})" for n, uuid in enumerate(uuids)]
    for n in range(len(uuids)):
        lines += [
            f"Initialized device {n} with 81079 MB of memory (80573 MB available, using 72515 MB of it), "
            "using FLOATS, using Tensor Cores",
            "Results are 268435456 bytes each, thus performing 265 iterations",
        ]
    text = "\n".join(lines) + "\n"
    done = [0] * len(uuids)
    for window in range(_WINDOWS):
        for place in range(_PER_WINDOW):
            share = (window * _PER_WINDOW + place + 1) / (_WINDOWS * _PER_WINDOW)
            wrong = [
                str(2 + place) if n in faulty and window == _WINDOWS - 2 else "0"
                for n in range(len(uuids))
            ]
            rates = [int(_GFLOPS * draw.uniform(0.996, 1.006)) for _ in uuids]
            done = [have + rate * 4 for have, rate in zip(done, rates, strict=True)]
            progress = " - ".join(
                f"{have} ({rate} Gflop/s)" for have, rate in zip(done, rates, strict=True)
            )
            temps = " - ".join(f"{draw.randint(62, 69)} C" for _ in uuids)
            text += (
                f"{share:.1%}  proc'd: {progress}   errors: {' - '.join(wrong)}   temps: {temps} \r"
            )
        at = start + timedelta(seconds=seconds * (window + 1) / _WINDOWS)
        text += f"\n\tSummary at:   {at.astimezone(UTC).strftime(_STAMP)}\n\n\n"
    text += "Killing processes with SIGTERM (soft kill)\n"
    text += "".join(f"Freed memory for dev {n}\nUninitted cublas\n" for n in range(len(uuids)))
    text += f"done\n\nTested {len(uuids)} GPUs:\n"
    text += "".join(f"\tGPU {n}: {'FAULTY' if n in faulty else 'OK'}\n" for n in range(len(uuids)))
    return text.encode()


def use_of_cards(
    *, uuids: Sequence[str], host: str, model: str, first: datetime, hours: int, level: float
) -> Iterator[dict[str, object]]:
    """One sample an hour and card, as a collector pushes them: busier by day and on weekdays."""
    draw = random.Random(f"{host}{first.isoformat()}")  # noqa: S311 - noise of a demo
    for hour in range(hours):
        at = first + timedelta(hours=hour)
        rhythm = (0.82 if at.weekday() >= 5 else 1.0) * (1.0 if 9 <= at.hour <= 23 else 0.9)
        for place, uuid in enumerate(uuids):
            share = min(max(level * rhythm * (1 - 0.02 * place) + draw.gauss(0, 0.05), 0.0), 0.99)
            yield {
                "card": uuid, "at": at.isoformat(), "host": host, "model": model,
                "utilization": round(share, 3), "sm_activity": round(0.7 * share, 3),
                "memory": round(0.25 + 0.6 * share, 3), "power": round(90 + 590 * share, 1),
            }  # fmt: skip


_COLUMNS = (
    "JobID", "JobIDRaw", "JobName", "User", "Account", "Partition", "State", "Submit", "Eligible", "Start", "End",
    "Elapsed", "ElapsedRaw", "Planned", "NNodes", "AllocTRES", "ReqTRES", "ExitCode",
)  # fmt: skip


def sacct(*, account: str, first: datetime, days: int, number: int = 4100) -> bytes:
    """`sacct --parsable2` of a team's jobs, three a day, in the times of `first`'s zone."""
    draw = random.Random(f"{account}{number}")  # noqa: S311 - noise of a demo
    rows = ["|".join(_COLUMNS)]
    for place in range(days * 3):
        asked = first + timedelta(days=place // 3, hours=4 * (place % 3))
        began = asked + timedelta(minutes=int(draw.lognormvariate(3.4, 0.9)))
        took = timedelta(minutes=int(draw.uniform(90, 420)))
        cards = draw.choice((1, 2, 2, 4))
        state = "NODE_FAIL" if place % 41 == 17 else "COMPLETED"
        tres = f"billing=32,cpu=32,gres/gpu:h100={cards},gres/gpu={cards},mem=400G,node=1"
        told = (asked, asked, began, began + took)
        rows.append(
            "|".join(
                (
                    str(number + place), str(number + place), f"sft-{number + place}", "lin", account, "gpu", state,
                    *(at.strftime("%Y-%m-%dT%H:%M:%S") for at in told), _span(took),
                    str(int(took.total_seconds())), _span(began - asked), "1", tres, tres, "0:0",
                )
            )
        )  # fmt: skip
    return ("\n".join(rows) + "\n").encode()


def _span(length: timedelta) -> str:
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (
        f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
        if days
        else f"{hours:02}:{minutes:02}:{seconds:02}"
    )


def dcgm_diag(serials: Sequence[str]) -> bytes:
    """`dcgmi diag -r 3 -j` in which every test passes on every card."""
    tests = {
        "Deployment": ("software",),
        "Hardware": ("memory", "diagnostic"),
        "Integration": ("pcie",),
        "Stress": ("memory_bandwidth", "targeted_stress", "targeted_power"),
    }
    results = [
        {"entity_group": "GPU", "entity_group_id": 1, "entity_id": n, "status": "Pass"}
        for n in range(len(serials))
    ]
    body = {
        "DCGM Diagnostic": {
            "test_categories": [
                {"category": category, "tests": [{"name": name, "results": results} for name in names]}
                for category, names in tests.items()
            ]
        },
        "entity_groups": [
            {
                "entities": [
                    {"device_id": "2330", "entity_id": n, "serial_num": serial}
                    for n, serial in enumerate(serials)
                ],
                "entity_group": "GPU",
                "entity_group_id": 1,
            }
        ],
        "metadata": {"Driver Version Detected": "570.124.06", "version": "4.2.3"},
    }  # fmt: skip
    return json.dumps(body, indent=1).encode()
