"""From the catalogue's rows to what the estimators take.

The plain functions read the shipped files and need no database. The ``from_database`` variants take the rows that
the organisation holds, with its corrections, and need a migrated database with a loaded catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from catalog import reference, selectors
from core.errors import InputError
from core.messages import msg
from planning.estimators.architecture import architecture_from_count
from planning.estimators.types import (
    Accelerator,
    Architecture,
    LatentAttention,
    MixtureOfExperts,
)
from planning.study.model import KnownModel

# Kinds whose shape the transformer estimators understand.
TRANSFORMERS = ("decoder", "encoder", "encoder-decoder")
BY_SAMPLE = (
    "encoder", "encoder-decoder", "dual-encoder", "vision-encoder", "cnn", "diffusion-unet", "diffusion-transformer",
)  # fmt: skip
LARGE_IMAGE = 512  # pixels a side
# Passes of one sample that follow each other: 20 diffusion steps with and without guidance; 28 steps of a distilled
# diffusion transformer (its pipeline's default); the tokens that 30 seconds of speech make.
USUAL_PASSES = {"diffusion-unet": 40.0, "diffusion-transformer": 28.0, "encoder-decoder": 100.0}


def accelerator(row: Mapping[str, Any]) -> Accelerator:
    """One catalogue row as an estimator's accelerator.

    Raises
    ------
    InputError
        If the row publishes no memory bandwidth, or no rate at all: nothing can be estimated on it.
    """
    if row["hbm_bandwidth"] is None or not row["peak_flops"]:
        raise InputError(
            "accelerator",
            msg(
                "%(name)s has no published rate or bandwidth; ask the vendor or measure it first",
                name=row["name"],
            ),
            value=row["slug"],
        )
    pcie = {} if row["pcie_bandwidth"] is None else {"pcie_bandwidth": row["pcie_bandwidth"]}
    return Accelerator(
        slug=row["slug"],
        name=row["name"],
        generation=row["generation"],
        hbm_bytes=row["hbm_bytes"],
        hbm_bandwidth=row["hbm_bandwidth"],
        peak_flops=dict(row["peak_flops"]),
        tdp=row["tdp"],
        link_bandwidth=row["link_bandwidth"],
        link_kind=row["link_kind"],
        form_factor=row["form_factor"],
        vendor=row["vendor"],
        year=row["year"],
        sparsity_factor=row["sparsity_factor"],
        memory_kind=_memory_kind(row),
        **pcie,
    )


def _memory_kind(row: Mapping[str, Any]) -> str:
    """A key of VISIBLE_SHARE. In-line error correction is on by default in data-centre cards only."""
    memory = row["memory_type"].upper()
    if not memory.startswith(("GDDR", "LPDDR")):
        return "hbm"
    inline = (
        memory.startswith(("GDDR5", "GDDR6")) and row["ecc"] and " RTX " not in f" {row['name']} "
    )
    return "gddr-ecc" if inline else "gddr"


def architecture(row: Mapping[str, Any]) -> Architecture:
    """One catalogue row as an estimator's model shape.

    Raises
    ------
    InputError
        If the row is not a transformer over tokens, or its shape is not complete.
    """
    if not is_transformer(row):
        raise InputError(
            "model",
            msg("%(name)s has no transformer shape to estimate from", name=row["name"]),
            value=row["slug"],
        )
    return Architecture(
        name=row["name"],
        layers=row["layers"],
        hidden=row["hidden"],
        heads=row["heads"],
        kv_heads=row["kv_heads"],
        head_dim=row["head_dim"],
        ffn=row["ffn"],
        vocab=row["vocab"],
        gated=bool(row["gated"]),
        tied_embeddings=bool(row["tied_embeddings"]),
        moe=MixtureOfExperts(**row["moe"]) if row["moe"] else None,
        mla=LatentAttention(**row["mla"]) if row["mla"] else None,
        sliding_window=row["sliding_window"],
        sliding_layers=row["sliding_layers"],
        cross_attention_layers=row["cross_attention_layers"],
        position_embeddings=row["position_embeddings"],
        causal=row["kind"] != "encoder",
        max_context=row["max_context"],
        params_total=float(row["params_total"]),
        params_active=float(row["params_active"]),
    )


def is_transformer(row: Mapping[str, Any]) -> bool:
    """Whether `row` is a transformer over tokens whose whole shape is known."""
    shape = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
    return row["kind"] in TRANSFORMERS and all(row[field] for field in shape)


def known_model(row: Mapping[str, Any]) -> KnownModel:
    """What is known of a catalogue's model: a transformer's shape, or of another model its size and forward pass."""
    forward = row["forward_gflop"] * 1e9 if row["forward_gflop"] else None
    if is_transformer(row):
        speaks = row["kind"] == "encoder-decoder"
        return KnownModel(
            architecture(row),
            forward,
            usual_passes=USUAL_PASSES.get(row["kind"], 1.0),
            equal_passes=not speaks,
        )
    shape = architecture_from_count(float(row["params_total"]), name=row["name"])
    return KnownModel(
        replace(shape, assumed=()),
        forward,
        False,
        network_of(row),
        USUAL_PASSES.get(row["kind"], 1.0),
    )


def network_of(row: Mapping[str, Any]) -> str:
    """What a model is mostly made of, for the share of the peak rate that it reaches."""
    if row["kind"] == "diffusion-unet":
        return "diffusion"
    if row["kind"] == "cnn":  # networks over large images are read as detectors
        return "detection" if (row["image_size"] or 0) >= LARGE_IMAGE else "convolution"
    return "transformer"


def can_estimate(row: Mapping[str, Any]) -> bool:
    """Whether `row` publishes enough of a card to estimate on it."""
    return row["hbm_bandwidth"] is not None and bool(row["peak_flops"])


@cache
def accelerators() -> dict[str, Accelerator]:
    """Every accelerator that can be estimated on, by slug."""
    rows = reference.accelerators().values()
    return {row["slug"]: accelerator(row) for row in rows if can_estimate(row)}


@cache
def architectures() -> dict[str, Architecture]:
    """Every transformer over tokens, by slug. Vision models, CNNs and diffusion models are not among them."""
    rows = reference.architectures().values()
    return {row["slug"]: architecture(row) for row in rows if is_transformer(row)}


def resolve_accelerator(name: str) -> Accelerator:
    """The accelerator that benchmarks, clouds and people call `name`: a slug, "H100", "A100-80GB", "RTX 4090".

    A bare model name means its usual data-centre form: H100 is the SXM5 card of 80 GB, A100 the SXM4 one of 80 GB.

    Raises
    ------
    InputError
        If the card is not in the catalogue, or publishes too little to estimate on.
    """
    slug = reference.accelerator_slug(name)
    if slug is None:
        raise unknown_accelerator(name)
    return accelerator(reference.accelerators()[slug])


def resolve_model(name: str) -> KnownModel:
    """What is known of the model called `name`, transformer or not. Raises InputError."""
    slug = reference.architecture_slug(name)
    if slug is None:
        raise unknown_model(name)
    return known_model(reference.architectures()[slug])


def unknown_model(name: str) -> InputError:
    """The refusal of a model that no catalogue knows, with the nearest names."""
    near = get_close_matches(reference.fold(name), reference.architecture_names(), n=3, cutoff=0.6)
    names = reference.architecture_names()
    return _unknown(
        "model", name, [reference.architectures()[names[text]]["name"] for text in near]
    )


def unknown_accelerator(name: str) -> InputError:
    """The refusal of an accelerator that no catalogue knows, with the nearest names."""
    near = get_close_matches(reference.fold(name), reference.accelerator_names(), n=3, cutoff=0.6)
    names = reference.accelerator_names()
    return _unknown(
        "accelerator", name, [reference.accelerators()[names[text]]["name"] for text in near]
    )


def _unknown(field: str, name: str, near: list[str]) -> InputError:
    nearest = ", ".join(dict.fromkeys(near))
    if not nearest and field == "model":
        text = msg("%(name)s is not a model of the catalogue", name=name)
    elif field == "model":
        text = msg(
            "%(name)s is not a model of the catalogue; near it are: %(nearest)s",
            name=name,
            nearest=nearest,
        )
    elif not nearest:
        text = msg("%(name)s is not an accelerator of the catalogue", name=name)
    else:
        text = msg(
            "%(name)s is not an accelerator of the catalogue; near it are: %(nearest)s",
            name=name,
            nearest=nearest,
        )
    return InputError(field, text, value=name, limit=nearest or None)


def resolve_architecture(name: str) -> Architecture:
    """The model called `name` ("Llama-3.1-8B", "meta-llama/Llama-3.1-8B", a slug). Raises InputError."""
    slug = reference.architecture_slug(name)
    if slug is None:
        raise unknown_model(name)
    return architecture(reference.architectures()[slug])


def accelerators_from_database() -> dict[str, Accelerator]:
    """As :func:`accelerators`, with the organisation's corrections: one query."""
    rows = selectors.accelerator_rows().values()
    return {row["slug"]: accelerator(row) for row in rows if can_estimate(row)}


def architectures_from_database() -> dict[str, Architecture]:
    """As :func:`architectures`, with the organisation's corrections: one query."""
    rows = selectors.architecture_rows().values()
    return {row["slug"]: architecture(row) for row in rows if is_transformer(row)}
