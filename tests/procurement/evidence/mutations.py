"""Damage done to evidence on its way: cut, patched, repeated, mixed, re-encoded. Deterministic by seed.

Single characters of a figure are never turned into other figures: an altered 9 cannot be told from a measured one,
by this reader or any other. That is what hashes at upload are for.
"""

from __future__ import annotations

import random
from collections.abc import Callable

TOKENS = [
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x1b[31m",
    b"\x1b]0;x\x07",
    b"\r",
    b"\n",
    b"\r\n",
    b"\t",
    b"|",
    b",",
    b";",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b"<",
    b">",
    b"&x;",
    b"N/A",
    b"[N/A]",
    b"-",
    b"--",
    b"nan",
    b"inf",
    b"1e999",
    b"9" * 500,
    b"-1",
    b"0x",
    b"%s%n",
    b"=HYPERLINK()",
    b"[Unknown Error]",
    b"[GPU is lost]",
    b"last message repeated 999999999 times",
    "算力".encode("gb18030"),
    "é".encode(),
    b"\xed\xa0\x80",
    b"GPU 0: FAULTY",
    b"<!ENTITY x 'y'>",
    b"(" * 200,
    b" " * 5000,
]


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + int(rng.expovariate(1 / 200)) + 1)


def truncate(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def behead(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def delete(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def repeat(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    start, end = _span(rng, data)
    return data[:end] + data[start:end] * rng.randrange(1, 6) + data[end:]


def insert(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) * rng.choice([1, 1, 1, 3, 50]) + data[at:]


def noise(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.randrange(1, 40)) + data[at:]


def flip_high_bit(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :]


def splice(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    other = rng.choice(others)
    start, end = _span(rng, other)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at:]


def append_other(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    return data + b"\n" + rng.choice(others)[:20_000]


def shuffle_lines(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    lines = data.splitlines(keepends=True)
    start = rng.randrange(len(lines) + 1)
    part = lines[start : start + rng.randrange(2, 30)]
    rng.shuffle(part)
    return b"".join(lines[:start] + part + lines[start + len(part) :])


def drop_line(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def join_lines(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    return data.replace(
        b"\n", rng.choice([b"", b" ", b"\r", b"\r\n", b"\n\n"]), rng.randrange(1, 50)
    )


def recode(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    text = data.decode("utf-8", errors="replace")
    return text.encode(rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "gb18030"]))


def prefix_lines(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    label = rng.choice([b"node1: ", b"[1,0]<stdout>:", b"0: ", b"> ", b"\x1b[0m"])
    return b"".join(label + line for line in data.splitlines(keepends=True))


MUTATIONS: list[Callable[[random.Random, bytes, list[bytes]], bytes]] = [
    truncate,
    behead,
    delete,
    repeat,
    insert,
    noise,
    flip_high_bit,
    splice,
    append_other,
    shuffle_lines,
    drop_line,
    join_lines,
    recode,
    prefix_lines,
]


def mutated(seed: int, data: bytes, others: list[bytes]) -> tuple[bytes, list[str]]:
    """`data` after one to four mutations, and their names."""
    rng = random.Random(seed)
    names = []
    for _ in range(rng.choice([1, 1, 2, 3, 4])):
        mutation = rng.choice(MUTATIONS)
        if mutation is append_other and names:
            continue  # after a cut, little but the other file would be left
        names.append(mutation.__name__)
        data = mutation(rng, data, others)[:400_000]
        if mutation is append_other:
            break
    return data, names
