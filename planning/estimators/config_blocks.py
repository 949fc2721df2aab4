"""Layers of an architecture search (Nemotron-NAS, DeciLM): each block says of its own what it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planning.estimators.config_fields import HEADS, Fields, not_read
from planning.estimators.config_layers import Layers
from planning.estimators.types import StateSpace

_BLOCKS = "block_configs"
# What a block's attention may say beside these is another kind of attention.
_PLAIN = ("window_length", "sparsify", "num_sink_tokens", "unshifted_sink")
_LARGEST_MULTIPLE = 100.0  # of a feed-forward width


@dataclass(frozen=True, slots=True)
class Blocks:
    """The layers of a config that lists its blocks."""

    layers: Layers
    kv_heads: int
    ffn: int  # mean width of the feed-forward parts, which keeps every count
    even: bool  # all of one width


def read_blocks(f: Fields, layers: int, hidden: int) -> Blocks | None:
    """What `block_configs` says of each of `layers` layers; None where it is not told.

    A part that is left out (``no_op``) costs nothing; one that is replaced by a linear map is one square matrix.

    Raises
    ------
    InputError
        If a block says something that no shape stands for, or attention layers differ in their heads.
    """
    if f.config.get(_BLOCKS) is None:
        return None
    blocks = f.per_layer(_BLOCKS, layers)
    if not blocks:
        raise not_read(_BLOCKS, f.config[_BLOCKS])
    attention = [_part(block, "attention") for block in blocks]
    feed = [_part(block, "ffn") for block in blocks]
    groups = [_group(part) for part in attention if _is_kept(part)]
    widths = [_width(part, hidden) for part in feed if _is_there(part)]
    heads = f.required(*HEADS)
    if len(set(groups)) > 1 or any(heads % group for group in groups):
        raise not_read(_BLOCKS, f.config[_BLOCKS])
    replaced = sum(part.get("replace_with_linear") is True for part in attention)
    linear = StateSpace("linear", float(hidden**2), 0.0) if replaced else None
    return Blocks(
        Layers(len(groups), linear=replaced, mlp=len(widths), state=linear),
        kv_heads=heads // groups[0] if groups else heads,
        ffn=round(sum(widths) / len(widths)) if widths else 0,
        even=len(set(widths)) <= 1,
    )


def _part(block: Any, name: str) -> Mapping[str, Any]:
    part = block.get(name) if isinstance(block, Mapping) else None
    if not isinstance(part, Mapping) or any(part.get(field) for field in _PLAIN):
        raise not_read(_BLOCKS, block)
    return part


def _is_there(part: Mapping[str, Any]) -> bool:
    """Whether a feed-forward part does anything; a layer that only keeps its place tells no width."""
    if part.get("no_op") is True:
        return False
    return part.get("replace_with_linear") is True or part.get("ffn_mult") is not None


def _is_kept(part: Mapping[str, Any]) -> bool:
    """Whether attention is there and keeps a cache."""
    gone = part.get("no_op") is True or part.get("replace_with_linear") is True
    return not gone and part.get("n_heads_in_group") is not None


def _group(part: Mapping[str, Any]) -> int:
    """Query heads that share one key/value head."""
    group = part["n_heads_in_group"]
    if not isinstance(group, int) or isinstance(group, bool) or group < 1:
        raise not_read(_BLOCKS, group)
    return group


def _width(part: Mapping[str, Any], hidden: int) -> float:
    """Two thirds of the multiple told, rounded up to 256; a square matrix is as large as a third of it, gated."""
    if part.get("replace_with_linear") is True:
        return hidden / 3.0
    multiple = part["ffn_mult"]
    number = isinstance(multiple, int | float) and not isinstance(multiple, bool)
    if not number or not 0 < multiple <= _LARGEST_MULTIPLE:
        raise not_read(_BLOCKS, multiple)
    return float(-(-int(2 * multiple * hidden / 3) // 256) * 256)
