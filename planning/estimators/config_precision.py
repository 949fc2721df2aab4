"""In which type a ``config.json`` says that its weights are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import InputError
from core.messages import msg, shown
from planning.estimators.config_fields import NESTED, Config
from planning.estimators.precision import usual_dtype

_BY_BITS = ("awq", "gptq", "gptqmodel", "auto-round", "autoround", "hqq", "aqlm", "eetq")
_INTEGERS = {4: "int4", 8: "int8"}
_FLOATS = {4: "fp4", 8: "fp8"}


def stated_weights(config: Config) -> str | None:
    """The data type of the weights that the quantisation of `config` states; None where none is stated.

    Raises
    ------
    InputError
        If weights are quantised in a way that no known type stands for.
    """
    stated = _quantization(config)
    if not stated:
        return None
    method = str(stated.get("quant_method") or stated.get("quant_algo") or "").lower()
    if stated.get("load_in_4bit") or stated.get("_load_in_4bit"):
        return "int4"
    if stated.get("load_in_8bit") or stated.get("_load_in_8bit"):
        return "int8"
    groups = stated.get("config_groups")
    if isinstance(groups, Mapping) and groups:  # compressed-tensors, ModelOpt
        return _of_groups(groups)
    if any(method.startswith(name) for name in _BY_BITS):
        bits = stated.get("bits", stated.get("w_bit", stated.get("nbits", 4)))
        return _known(_INTEGERS, bits, "quantization_config.bits", bits)
    written = str(stated.get("quant_algo") or method)
    ours = usual_dtype(written)
    if ours is None:
        raise _unknown("quantization_config.quant_method", written)
    return ours


def _quantization(config: Config) -> Mapping[str, Any]:
    for part in (config, *(config.get(key) for key in NESTED)):
        if isinstance(part, Mapping):
            stated = part.get("quantization_config") or part.get("compression_config")
            if isinstance(stated, Mapping):
                return stated
    return {}


def _of_groups(groups: Mapping[str, Any]) -> str:
    """The smallest type of several groups: of a mixed checkpoint that of the experts, which are most of it."""
    found: list[tuple[int, str]] = []
    for group in groups.values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        bits, kind = weights.get("num_bits"), str(weights.get("type", "int"))
        known = _FLOATS if kind == "float" else _INTEGERS
        dtype = _known(known, bits, "quantization_config.config_groups", f"{kind}{bits}")
        found.append((int(bits or 0), dtype))
    if not found:
        raise _unknown("quantization_config.config_groups", "")
    return min(found)[1]


def _known(known: Mapping[int, str], bits: Any, field: str, shown: Any) -> str:
    if not isinstance(bits, int) or isinstance(bits, bool) or bits not in known:
        raise _unknown(field, shown)
    return known[bits]


def _unknown(field: str, value: Any) -> InputError:
    text = msg(
        "%(field)s is %(value)s, which is no known type of weights; say which one to take in weight_precision",
        field=field,
        value=shown(value),
    )
    return InputError("weight_precision", text, value=shown(value), limit="fp8, int8, int4, fp4")
