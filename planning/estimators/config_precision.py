"""In which types a ``config.json`` says that its weights and its cache are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import InputError
from core.messages import msg, shown
from planning.estimators.config_fields import NESTED, Config
from planning.estimators.precision import KV_DTYPES, usual_dtype

_BY_BITS = ("awq", "gptq", "gptqmodel", "auto-round", "autoround", "hqq")
_EIGHT_BITS = ("eetq",)  # know no other width
_STORED = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}
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
        return _of_bits(stated, method)
    if method in _EIGHT_BITS:
        return "int8"
    written = str(stated.get("quant_algo") or method)
    ours = usual_dtype(written)
    if ours is None:
        raise _unknown("quantization_config.quant_method", written)
    return ours


def stated_weights_or_stored(config: Config) -> str | None:
    """:func:`stated_weights`, else the 16-bit type in which unquantised weights are stored (``torch_dtype``)."""
    quantised = stated_weights(config)
    if quantised is not None:
        return quantised
    for part in (config, *(config.get(key) for key in NESTED)):
        if isinstance(part, Mapping):
            stored = str(part.get("torch_dtype") or part.get("dtype") or "").removeprefix("torch.")
            if stored in _STORED:
                return _STORED[stored]
    return None


def stated_cache(config: Config) -> str | None:
    """The data type of the KV cache that the quantisation of `config` was calibrated for; None where none is stated.

    compressed-tensors and ModelOpt state it by bits and type (``kv_cache_scheme``) or by name
    (``kv_cache_quant_algo``); vLLM and TensorRT-LLM then keep the cache in it.

    Raises
    ------
    InputError
        If a cache is stated that no known type stands for.
    """
    stated = _quantization(config)
    scheme = stated.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and scheme:
        bits, kind = scheme.get("num_bits"), str(scheme.get("type", "int"))
        known = _FLOATS if kind == "float" else {8: "int8"}
        whole = isinstance(bits, int) and not isinstance(bits, bool)
        if not whole or bits not in known:
            raise _unknown_cache("quantization_config.kv_cache_scheme", f"{kind}{bits}")
        return known[bits]
    named = stated.get("kv_cache_quant_algo") or (scheme if isinstance(scheme, str) else None)
    if named is None or str(named).lower() in ("none", "auto"):
        return None
    ours = usual_dtype(str(named))
    if ours not in KV_DTYPES:
        raise _unknown_cache("quantization_config.kv_cache_quant_algo", named)
    return ours


def _of_bits(stated: Mapping[str, Any], method: str) -> str:
    """Integers or, where auto-round says so, floats of as many bits as are stated; HQQ states them deeper inside."""
    inner: Any = stated.get("quant_config")
    inner = inner.get("weight_quant_params") if isinstance(inner, Mapping) else None
    for part in (stated, inner if isinstance(inner, Mapping) else {}):
        bits = next((part[k] for k in ("bits", "w_bit", "nbits") if part.get(k) is not None), None)
        if bits is not None:
            kind = str(stated.get("data_type") or "int")
            known = _FLOATS if "fp" in kind or "float" in kind else _INTEGERS
            said = bits if known is _INTEGERS else f"{kind}{bits}"
            dtype = _known(known, bits, "quantization_config.bits", said)
            return "mxfp4" if dtype == "fp4" and kind.startswith("mx") else dtype
    text = msg(
        "quantization_config (%(method)s) states no bits; say which type of weights to take in weight_precision",
        method=method,
    )
    raise InputError("weight_precision", text, value=method, limit="fp8, int8, int4, fp4")


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
        if dtype == "fp4" and weights.get("group_size") == 32:  # compressed-tensors' name of MXFP4
            dtype = "mxfp4"
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


def _unknown_cache(field: str, value: Any) -> InputError:
    text = msg(
        "%(field)s is %(value)s, which is no known type of a KV cache; say which one to take in kv_precision",
        field=field,
        value=shown(value),
    )
    return InputError("kv_precision", text, value=shown(value), limit=", ".join(KV_DTYPES))
