"""The form of the quick estimate: every input of a kind of workload, in groups. It holds what was typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.forms import BoundField
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext

from core.errors import DomainError, InputError
from planning.forms.declared import declared_field, error_text
from planning.study.fields import Field, WorkloadErrors
from planning.study.options import (
    ACCURACY,
    CONSTRAINTS,
    HARDWARE,
    INTERRUPTIBLE,
    LATENCY,
    SERVING_LAYOUT,
    TRAINING_LAYOUT,
    option_fields,
    request_fields,
)
from planning.study.workloads import FIELDS, INFERENCE, MODEL_FIELDS, NEEDS_MODEL, TRAINING, Kind

# Told first; the rest of a workload and every option folds away under a heading.
PLAIN = (
    "model", "method", "tokens", "sequence_length", "precision", "samples", "flops_per_sample", "requests_per_day",
    "peak_factor", "items", "window_hours", "input_tokens", "output_tokens", "weight_precision", "kv_precision",
    "gpu_hours", "accelerators", "memory_bytes", "duration_days", "latency_class",
)  # fmt: skip
OTHER_MODELS = ("parameters", "config")
# What an estimate uses; the rest of the constraints belongs to a study.
USED_CONSTRAINTS = frozenset(
    {"duration_days", *(f.name for f in LATENCY), *(f.name for f in ACCURACY)}
)
MOST_COMPARED = 8

Values = Mapping[str, Any]


def shown_fields(kind: Kind) -> dict[str, Field]:
    """The declarations that the page asks for a kind, by name."""
    fields = request_fields(kind)
    hidden = {field.name for field in (*CONSTRAINTS, *INTERRUPTIBLE)} - USED_CONSTRAINTS
    hidden |= {name for name, field in fields.items() if field.type == "series"}
    if kind not in TRAINING:
        hidden.add("duration_days")
    return {name: field for name, field in fields.items() if name not in hidden}


class EstimateForm(forms.Form):
    """What to estimate and on what. Bound to the address's query; refusals are added by :meth:`refuse`."""

    def __init__(
        self,
        kind: Kind,
        data: MultiValueDict[str, str],
        *,
        accelerators: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    ) -> None:
        self.kind = kind
        self.declared = shown_fields(kind)
        shown = data.copy()
        for (
            name,
            declared,
        ) in self.declared.items():  # a list shows its default, not its first entry
            if declared.type == "choice" and declared.default is not None and not shown.get(name):
                shown[name] = str(declared.default)
        super().__init__(shown, auto_id="id_%s")
        self.refusals: dict[str, list[str]] = {}
        for name, declared in self.declared.items():
            if name == "accelerator":
                self.fields[name] = forms.MultipleChoiceField(
                    label=declared.label.render(gettext),
                    choices=accelerators,
                    widget=forms.CheckboxSelectMultiple(),
                    required=False,
                )
            else:
                self.fields[name] = declared_field(declared)
                self.fields[name].widget.attrs["aria-describedby"] = f"refusal-{name}"
        if "model" in self.fields:
            self.fields["model"].widget.attrs["list"] = "models"
            self.fields["model"].help_text = ""

    def group(self, *names: str) -> list[BoundField]:
        """The fields of these names that this kind has, in this order."""
        return [self[name] for name in names if name in self.fields]

    @property
    def plain(self) -> list[BoundField]:
        return self.group(*PLAIN)

    @property
    def other_models(self) -> list[BoundField]:
        return self.group(*OTHER_MODELS) if self.kind in NEEDS_MODEL else []

    @property
    def advanced(self) -> list[tuple[str, list[BoundField]]]:
        """(heading, fields) of what is seldom told."""
        layout = {f.name for f in (*TRAINING_LAYOUT, *SERVING_LAYOUT)}
        cluster = {f.name for f in HARDWARE} | {"commodity"}
        limits = USED_CONSTRAINTS
        own = {f.name for f in FIELDS[self.kind]}
        groups: dict[str, list[BoundField]] = {
            gettext("Workload"): [],
            gettext("Layout"): [],
            gettext("Serving") if self.kind in INFERENCE else gettext("Recipe"): [],
            gettext("Servers and network"): [],
            gettext("Targets"): [],
        }
        workload, splits, recipe, servers, targets = groups.values()
        options = {f.name for f in option_fields(self.kind)}
        for name in self.fields:
            if name in (*PLAIN, *OTHER_MODELS, "accelerator"):
                continue
            if name in layout:
                splits.append(self[name])
            elif name in cluster:
                servers.append(self[name])
            elif name in limits:
                targets.append(self[name])
            elif name in options:
                recipe.append(self[name])
            elif name in own:
                workload.append(self[name])
        return [(heading, fields) for heading, fields in groups.items() if fields]

    def full_clean(self) -> None:
        """Nothing is checked here: the estimate names each fault of what was told, and once is enough."""
        self._errors = forms.utils.ErrorDict()
        self.cleaned_data = {}

    @property
    def advanced_told(self) -> bool:
        """Whether anything under "advanced" was told or refused: then it stands open."""
        folded = [field for _heading, fields in self.advanced for field in fields]
        return any(
            field.name in self.refusals
            or self.data.get(field.name) not in (None, "", str(self.declared[field.name].default))
            for field in folded
        )

    @property
    def chosen(self) -> list[str]:
        """The accelerators that are ticked."""
        return list(self["accelerator"].value() or [])

    def told(self) -> dict[str, Any]:
        """The request as the address states it: what was typed, without empty boxes."""
        told: dict[str, Any] = {"kind": str(self.kind)}
        for name in self.fields:
            value = self[name].value()
            if value not in (None, "", []):
                told[name] = value
        return told

    def refuse(self, error: DomainError) -> list[str]:
        """Keep each refusal for its field; those of no field on the page are returned."""
        labels = {name: str(self.fields[name].label) for name in self.fields}
        elsewhere = []
        for one in error.errors if isinstance(error, WorkloadErrors) else [error]:
            if not isinstance(one, InputError):
                elsewhere.append(one.message.render(gettext))
                continue
            text, name = error_text(one, labels), _box(one.field, self.fields)
            if name is None:
                elsewhere.append(text)
            else:
                self.refusals.setdefault(name, []).append(text)
        return elsewhere


def _box(field: str, fields: Mapping[str, forms.Field]) -> str | None:
    """The box of the page that a refused field belongs to."""
    if field in fields:
        return field
    if f"{field}_parallel" in fields:
        return f"{field}_parallel"
    if "config" in fields and field not in MODEL_FIELDS and "." not in field:
        return "config" if field in _CONFIG_KEYS else None
    return None


_CONFIG_KEYS = frozenset(
    {
        "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size",
        "vocab_size", "num_experts_per_tok", "n_routed_experts", "layers", "hidden", "heads", "kv_heads", "head_dim",
        "vocab", "ffn",
    }
)  # fmt: skip
