"""Thresholds by accelerator model: versioned data, copied into the contract when the order is placed.

A verdict names the version it was given by. What a contract changes is laid over the copy and shows in the version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.messages import msg
from planning.telemetry_formats.values import number

_DEFAULT = Path(__file__).parent / "data" / "policies.json"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit with its unit and where it comes from."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """What is known of one accelerator model: how tools name it, its identity and its own limits."""

    name: str
    match: str
    identity: Mapping[str, str | float]
    thresholds: Mapping[str, Threshold]


@dataclass(frozen=True, slots=True)
class Policy:
    """Default limits, limits by model, and what a contract changed. Later ones win."""

    version: str
    thresholds: Mapping[str, Threshold]
    models: tuple[ModelPolicy, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(
        default_factory=dict
    )  # as it was read, to be copied into a contract

    def model(self, name: str | None) -> ModelPolicy | None:
        """The entry whose pattern is in a device name such as "NVIDIA H100 80GB HBM3"."""
        if not name:
            return None
        return next((m for m in self.models if re.search(m.match, name, re.IGNORECASE)), None)

    def limit(self, key: str, model: str | None = None) -> float | None:
        """A limit for a model, or None when neither the contract, the model nor the defaults have one."""
        overridden = _stated(self.overrides.get(key))
        if overridden is not None:
            return overridden
        entry = self.model(model)
        threshold = (entry.thresholds.get(key) if entry else None) or self.thresholds.get(key)
        return threshold.value if threshold else None

    def require(self, key: str, model: str | None = None) -> float:
        """As :meth:`limit`, for keys that the defaults hold."""
        value = self.limit(key, model)
        if value is None:
            raise KeyError(key)
        return value

    def with_overrides(self, overrides: Mapping[str, Any]) -> Policy:
        """This policy with a contract's own values, and a version that says so."""
        if not overrides:
            return self
        version = self.version.removesuffix("+contract") + "+contract"
        return replace(self, overrides={**self.overrides, **overrides}, version=version)

    def to_json(self) -> dict[str, Any]:
        return {**self.source, "overrides": dict(self.overrides)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Policy:
        """A policy from its JSON form. Raises :class:`InputError` naming the key that is missing or not a number."""
        try:
            policy = cls(
                version=str(data["version"]),
                thresholds=_thresholds(data["thresholds"]),
                models=tuple(_model(entry) for entry in data["models"]),
                source={k: v for k, v in data.items() if k != "overrides"},
            )
        except (KeyError, TypeError) as error:
            raise InputError(
                "policy",
                msg(
                    "The policy lacks %(key)s or gives it a value of the wrong kind", key=str(error)
                ),
            ) from error
        return policy.with_overrides(data.get("overrides") or {})


_STATED = re.compile(r"\s*-?[\d.]+\s*[A-Za-z/%]{0,8}\s*(?:\([^()]*\))?\s*")


def _stated(value: object) -> float | None:
    """A contract's number: plain, or as "24 (PCIe Gen4 x16)". Prose that begins with a number is no limit."""
    if isinstance(value, str):
        return number(value) if _STATED.fullmatch(value) else None
    return number(value) if isinstance(value, int | float) else None


def _thresholds(data: Mapping[str, Any]) -> dict[str, Threshold]:
    found = {}
    for key, entry in data.items():
        value = number(entry["value"])
        if value is None:
            raise KeyError(key)
        found[key] = Threshold(value, str(entry["unit"]), str(entry["source"]))
    return found


def _model(entry: Mapping[str, Any]) -> ModelPolicy:
    own = {"name", "match", "thresholds"}
    return ModelPolicy(
        name=entry["name"],
        match=entry["match"],
        identity={k: v for k, v in entry.items() if k not in own},
        thresholds=_thresholds(entry["thresholds"]),
    )


@cache
def default_policy() -> Policy:
    """The policy that comes with the product."""
    return Policy.from_json(json.loads(_DEFAULT.read_text()))


@dataclass(frozen=True, slots=True)
class EvidenceContext:
    """What a verdict depends on besides the file: the contract's policy, the order, the vendor's promise.

    `order` may hold ordered_model, quantity, expected_device_id, expected_power_default_w, expected_max_sm_mhz,
    expected_mem_clock_mhz, expected_memory_mib, serials (list), vbios (list), condition ("new" unless said),
    window_start and window_end of the burn-in (ISO 8601 with zone).
    `promise` may hold hpl_tflops_min, samples_per_s_min, tokens_per_s_min, busbw_gbs_min.
    """

    policy: Policy
    order: Mapping[str, Any] = field(default_factory=dict)
    promise: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EvidenceContext:
        """From `{"policy": …, "policy_used": …, "order_context": …, "vendor_promise": …}`, each optional."""
        for key in ("policy", "policy_used", "order_context", "vendor_promise"):
            if not isinstance(data.get(key) or {}, Mapping):
                raise InputError(key, msg("%(field)s must be an object", field=key))
        policy = Policy.from_json(data["policy"]) if data.get("policy") else default_policy()
        return cls(
            policy=policy.with_overrides(data.get("policy_used") or {}),
            order=data.get("order_context") or {},
            promise=data.get("vendor_promise") or {},
        )

    @property
    def window(self) -> tuple[float, float] | None:
        """Start and end of the burn-in in seconds since 1970, from `window_start` and `window_end` with their zone."""
        moments = []
        for key in ("window_start", "window_end"):
            try:
                moment = datetime.fromisoformat(str(self.order.get(key)))
            except ValueError:
                return None
            if moment.tzinfo is None:
                return None
            moments.append(moment.timestamp())
        return moments[0], moments[1]

    @property
    def sold_as_new(self) -> bool:
        """Acceptance is of new hardware unless the order says otherwise."""
        return str(self.order.get("condition", "new")).lower() == "new"


def default_context() -> EvidenceContext:
    """Default policy, no order, no promise."""
    return EvidenceContext(default_policy())
