"""A criterion of throughput answered by promises of the lines. No database."""

from __future__ import annotations

from decimal import Decimal

import pytest

from procurement.per import Per
from procurement.promised_answers import Promised, PromisingLine, promised_value
from procurement.requirements import Required, RequirementKind, check_requirements

OWN = "llama-3.1-8b, LoRA, bf16"


def asked(
    per: Per, unit: str = "Tflop/s", name: str = "HPL", lines: tuple[int, ...] = ()
) -> Required:
    kind = RequirementKind.THROUGHPUT
    return Required(kind, Decimal(1), unit, per, benchmark=name, lines=lines)


def line(*promises: Promised, items: int = 2, cards: int = 8, position: int = 1) -> PromisingLine:
    return PromisingLine(position, Decimal(items), cards, cards > 1, promises)


def hpl(value: str, per: Per = Per.CARD, unit: str = "Gflop/s") -> Promised:
    return Promised("hpl", "", Decimal(value), unit, per)


@pytest.mark.parametrize(
    ("wanted", "lines", "expected"),
    [
        (asked(Per.CARD), [line(hpl("41000"))], 41),
        (asked(Per.SERVER), [line(hpl("41000"))], 328),
        (asked(Per.WHOLE), [line(hpl("41000"))], 656),
        (asked(Per.WHOLE), [line(hpl("320", Per.SERVER, "Tflop/s"))], 640),
        (asked(Per.CARD), [line(hpl("320", Per.SERVER, "Tflop/s"))], 40),
        # its own figure before one that is worked out
        (asked(Per.SERVER), [line(hpl("41000"), hpl("320000", Per.SERVER))], 320),
        # the sum of the lines in all, the lowest of them for one
        (asked(Per.WHOLE), [line(hpl("41000")), line(hpl("40000"), items=1)], 976),
        (asked(Per.CARD), [line(hpl("41000")), line(hpl("40000"))], 40),
        (asked(Per.CARD, lines=(2,)), [line(hpl("41000")), line(hpl("40000"), position=2)], 40),
        # a line that promises nothing, another benchmark, a unit that does not compare
        (asked(Per.CARD), [line(hpl("41000")), line()], None),
        (asked(Per.CARD, name="gpu-burn"), [line(hpl("41000"))], None),
        (asked(Per.CARD, unit="tokens/s"), [line(hpl("41000"))], None),
        (asked(Per.CARD), [], None),
        # a link's speed is of a server: cards do not add up to it
        (asked(Per.CARD, "GB/s", "NCCL"), [line(Promised("nccl_busbw", "", Decimal(400), "GB/s", Per.SERVER))], None),
        (asked(Per.SERVER, "GB/s", "NCCL"), [line(Promised("nccl_busbw", "", Decimal(400), "GB/s", Per.SERVER))], 400),
        # the request's own work, by its name
        (asked(Per.WHOLE, "tokens/s", OWN),
         [line(Promised("other", "Llama-3.1-8B LoRA BF16", Decimal(9000), "tokens/s", Per.SERVER))], 18000),
        (asked(Per.WHOLE, "tokens/s", OWN),
         [line(Promised("other", "llama-3.1-70b", Decimal(9000), "tokens/s", Per.SERVER))], None),
    ],
)  # fmt: skip
def test_promises_answer_what_is_asked(wanted, lines, expected):
    assert promised_value(wanted, lines) == expected


def test_only_a_throughput_is_answered_by_a_promise():
    power = Required(RequirementKind.POWER, Decimal(10), "kW", Per.SERVER)
    assert promised_value(power, [line(hpl("41000"))]) is None


def test_a_server_has_one_name_and_keeps_its_hash():
    given = {"kind": "power", "value": "10", "unit": "kW"}
    (new,) = check_requirements([{**given, "per": "server"}], [1])
    (earlier,) = check_requirements([{**given, "per": "node"}], [1])
    assert new == earlier
    assert new.per == Per.SERVER
    assert new.to_json()["per"] == "node"  # as RFQs were hashed before
