"""The reference catalogue as shipped: facts from the data files, in SI units, without a database and without models.

Rows are what *software* sees: one device. A board of several devices (K80, A16, MI250X) is divided by its devices,
and says how many there are. The files keep the figures as vendors print them.
"""

from __future__ import annotations

import json
import re
from datetime import date
from functools import cache
from importlib import resources
from typing import Any, TypedDict

PCIE_LANE_BANDWIDTH = {3: 1e9, 4: 2e9, 5: 4e9, 6: 8e9}  # [B/s] one lane, one direction, nominal

# Words that name the maker, not the card.
_MAKERS = ("nvidia", "geforce", "tesla", "quadro", "amd", "instinct", "intel", "habana", "google",
           "cloud", "aws", "amazon", "huawei", "cambricon", "hygon", "kunlunxin", "metax")  # fmt: skip


class Provenance(TypedDict):
    """Where a row comes from and how far it is known."""

    source: str
    source_url: str
    as_of: date
    confidence: str  # "read", "recalled", "derived" or "chosen"
    notes: str


class AcceleratorRow(Provenance):
    """One accelerator as software sees it. Bytes, B/s, FLOP/s, W."""

    slug: str
    name: str
    vendor: str
    generation: str  # lower case
    architecture: str  # as the vendor writes it
    year: int | None
    hbm_bytes: float
    memory_type: str
    hbm_bandwidth: float | None  # None: not published
    peak_flops: dict[str, float]  # dense, by dtype
    marketing_flops: dict[str, float]  # what the data sheet prints with structured sparsity
    sparsity_factor: float
    tdp: float | None
    form_factor: str
    link_name: str
    link_kind: str
    link_bandwidth: float | None  # both directions summed; None: PCIe only, or not published
    link_peers: int | None  # cards that a bridge joins; None: all of a server
    pcie_bandwidth: float | None  # one direction
    mig_instances: int | None
    ecc: bool | None
    devices_per_board: int
    export_note: str
    read_fields: list[str]  # figures that were read again in a second source
    aliases: list[str]


class ArchitectureRow(Provenance):
    """The shape of one model. None: not known, or it does not apply to this kind."""

    slug: str
    name: str
    family: str
    kind: str  # decoder, encoder, encoder-decoder, vision-encoder, cnn, ...
    layers: int | None
    hidden: int | None
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    ffn: int | None
    vocab: int | None
    max_context: int | None
    tied_embeddings: bool | None
    gated: bool | None
    position_embeddings: int
    cross_attention_layers: int
    sliding_window: int | None
    sliding_layers: int
    moe: dict[str, int] | None
    mla: dict[str, int] | None
    params_total: int
    params_active: int
    image_size: int | None
    patch_size: int | None
    forward_gflop: float | None
    licence: str
    read_fields: list[str]
    params_computed_total: int | None
    params_computed_active: int | None
    kv_elements_per_token: int | None


@cache
def document(name: str) -> dict[str, Any]:
    """The content of one data file, e.g. ``"accelerators"``. Do not change it: it is shared."""
    text = resources.files("catalog").joinpath("data", f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


@cache
def accelerators() -> dict[str, AcceleratorRow]:
    """Every accelerator by slug, per device, in SI units."""
    rows = (accelerator_row(entry) for entry in document("accelerators")["accelerators"])
    return {row["slug"]: row for row in rows}


@cache
def architectures() -> dict[str, ArchitectureRow]:
    """Every model shape by slug, those of other kinds than language models included."""
    rows: dict[str, ArchitectureRow] = {}
    for entry in document("models")["models"]:
        row: Any = {**entry, "as_of": date.fromisoformat(entry["as_of"])}
        rows[entry["slug"]] = row
    return rows


def accelerator_row(entry: dict[str, Any]) -> AcceleratorRow:
    """One entry of the file, from GB and TFLOPS of a board to bytes and FLOP/s of a device."""
    devices = entry["devices_per_board"]
    pcie = entry["pcie"]
    lanes = PCIE_LANE_BANDWIDTH[int(pcie["generation"])] * pcie["lanes"] if pcie else None
    return AcceleratorRow(
        slug=entry["slug"],
        name=entry["name"],
        vendor=entry["vendor"],
        generation=entry["generation"],
        architecture=entry["architecture"],
        year=entry["year"],
        hbm_bytes=entry["memory_gb"] * 1e9 / devices,
        memory_type=entry["memory_type"],
        hbm_bandwidth=_scaled(entry["bandwidth_gb_per_s"], 1e9 / devices),
        peak_flops={k: v * 1e12 / devices for k, v in entry["dense_tflops"].items()},
        marketing_flops={k: v * 1e12 / devices for k, v in entry["marketing_tflops"].items()},
        sparsity_factor=entry["sparsity_factor"],
        tdp=_scaled(entry["tdp_w"], 1 / devices),
        form_factor=entry["form_factor"],
        link_name=entry["link"],
        link_kind=entry["link_kind"],
        link_bandwidth=_scaled(entry["link_gb_per_s"], 1e9 / devices),
        link_peers=entry["link_peers"],
        pcie_bandwidth=lanes,
        mig_instances=entry["mig_instances"],
        ecc=entry["ecc"],
        devices_per_board=devices,
        export_note=entry["export_note"],
        read_fields=entry["read_fields"],
        aliases=entry["aliases"],
        source=entry["source"],
        source_url=entry["source_url"],
        as_of=date.fromisoformat(entry["as_of"]),
        confidence=entry["confidence"],
        notes=entry["notes"],
    )


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


class DeviceIdentity(TypedDict):
    """What tools print of one device of a model, where a capture shows it. MiB, W, MHz; hexadecimal without 0x."""

    slug: str
    device_id: str
    subsystem_id: str
    memory_mib: int
    power_default_w: float
    power_max_w: float
    max_sm_mhz: int
    max_memory_mhz: int
    source: str
    as_of: str
    confidence: str


def device_identity(slug: str) -> DeviceIdentity | None:
    """Identity facts of a model, with their source and date; None where no capture is known."""
    rows: list[DeviceIdentity] = document("device_identity")["devices"]
    return next((row for row in rows if row["slug"] == slug), None)


def fold(name: str) -> str:
    """`name` without maker, case, spaces and signs: "NVIDIA GeForce RTX 4090" and "rtx-4090" are one card."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "".join(word for word in words if word not in _MAKERS)


@cache
def accelerator_names() -> dict[str, str]:
    """Folded name → slug. Specific names win over aliases."""
    names: dict[str, str] = {}
    for row in accelerators().values():
        for name in (fold(row["slug"]), fold(row["name"])):
            names.setdefault(name, row["slug"])
    for row in accelerators().values():
        for alias in row["aliases"]:
            names.setdefault(fold(alias), row["slug"])
    return names


def accelerator_slug(name: str) -> str | None:
    """Slug of the card that benchmarks, clouds and people call `name`; None when it is not known.

    Memory in the name ("NVIDIA H100 80GB HBM3", "L40S-48GB") may be more than the catalogue's name says: then the
    rest of the name decides, and the memory must agree.
    """
    if name in accelerators():
        return name
    known = accelerator_names()
    return known.get(fold(name)) or _by_memory(name)


_MEMORY_WORD = re.compile(r"(\d+(?:gb|gib|g)|hbm\d?e?|gddr\d?x?)")
_FORM_WORD = re.compile(r"(sxm\d?|oam|hgx|tensor|core|gpu)")
_MEMORY_SLACK = 0.1  # makers, clouds and drivers round differently


def _by_memory(name: str) -> str | None:
    words = re.findall(r"[a-z0-9]+", name.lower())
    memory = [word for word in words if _MEMORY_WORD.fullmatch(word)]
    sizes = [float(re.sub(r"\D", "", word)) for word in memory if word[0].isdigit()]
    rest = [word for word in words if word not in memory]
    short = [word for word in rest if not _FORM_WORD.fullmatch(word)]
    for kept in (rest, short):
        core = fold(" ".join(kept))
        if not core:
            continue
        slug = accelerator_names().get(core)
        family = [slug] if slug else []
        family += [s for folded, s in accelerator_names().items() if folded.startswith(core)]
        for one in dict.fromkeys(family if sizes else family[:1] if slug else []):
            held = accelerators()[one]["hbm_bytes"] / 1e9
            if not sizes or abs(held / sizes[0] - 1.0) <= _MEMORY_SLACK:
                return one
    return None


def accelerator_label(slug: str) -> str:
    """The card's name as people read it; the text itself when it is no card of the catalogue."""
    known = accelerator_slug(slug)
    return accelerators()[known]["name"] if known else slug


def model_label(slug: str) -> str:
    """The model's name as people read it; the text itself when it is no model of the catalogue."""
    known = architecture_slug(slug)
    return architectures()[known]["name"] if known else slug


@cache
def architecture_names() -> dict[str, str]:
    """Folded model name → slug."""
    return {
        fold(text): row["slug"]
        for row in architectures().values()
        for text in (row["slug"], row["name"])
    }


def architecture_slug(name: str) -> str | None:
    """Slug of the model called `name`, with or without its organisation; None when it is not known."""
    return architecture_names().get(fold(name.rsplit("/", 1)[-1]))
