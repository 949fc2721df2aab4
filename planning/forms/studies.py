"""What may be turned on a study, as sliders."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from core.errors import InvalidTransition
from core.messages import msg
from planning.economics import defaults
from planning.models import Study
from planning.study.search.what_if import Changes
from planning.study.workloads import ONLINE, Kind

AMOUNT_LABELS = {
    Kind.ONLINE_INFERENCE: _("Requests per day, times"),
    Kind.BATCH_INFERENCE: _("Items, times"),
    Kind.ONLINE_SAMPLES: _("Requests per day, times"),
    Kind.BATCH_SAMPLES: _("Items, times"),
    Kind.GPU_HOURS: _("GPU hours, times"),
    Kind.SAMPLES: _("Samples, times"),
}


class Slider(forms.NumberInput):
    """A number that is slid; the value stands beside it."""

    input_type = "range"


def _slider(
    label: Any, low: float, high: float, step: float, *, whole: bool = False
) -> forms.Field:
    field: type[forms.Field] = forms.IntegerField if whole else forms.FloatField
    return field(
        label=label,
        min_value=low,
        max_value=high,
        required=False,
        widget=Slider(attrs={"step": step}),
    )  # type: ignore[call-arg]


def _use(study: Study) -> float:
    """Of bought cards by others, as the study took it: what was measured, else the usual one. Share"""
    measured = study.inputs.get("owned_utilisation")
    return round(defaults.value("utilisation.owned") if measured is None else measured, 2)


class WhatIfForm(forms.Form):
    """Factors and absolute values, begun where the study stands."""

    amount = _slider(_("Tokens, times"), 0.25, 4, 0.05)
    duration_days = _slider(_("Duration (days)"), 1, 1095, 1, whole=True)
    growth_per_month = _slider(_("Growth per month"), -0.1, 0.3, 0.01)
    price = _slider(_("Rents, times"), 0.3, 2, 0.05)
    utilisation = _slider(_("Use of bought cards by others"), 0.01, 1, 0.01)

    def __init__(self, data: Any, *, study: Study) -> None:
        super().__init__(data)
        if study.result is None or "schema" not in study.result:
            raise InvalidTransition(msg("The study has no result yet"))
        request = study.result["request"]
        kind = Kind(request["kind"])
        if kind in AMOUNT_LABELS:
            self.fields["amount"].label = AMOUNT_LABELS[kind]
        if kind not in ONLINE:
            del self.fields["growth_per_month"]
        if kind == Kind.GPU_HOURS:
            del self.fields["duration_days"]
        start = {
            "amount": 1.0,
            "price": 1.0,
            "utilisation": _use(study),
            "duration_days": request.get("duration_days") or 365,
            "growth_per_month": request.get("growth_per_month", 0.0),
        }
        for name, field in self.fields.items():
            field.initial = start[name]
            field.widget.attrs["value"] = start[name]

    def changes(self) -> Changes:
        """What was turned; what stands where the study began counts as not turned."""
        turned = {
            name: value
            for name, value in self.cleaned_data.items()
            if value is not None and value != self.fields[name].initial
        }
        return Changes(**turned)
