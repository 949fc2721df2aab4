"""Forms of calibration."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from catalog.models import Accelerator
from core.models import Team
from planning.calibration.apply import CLASSES
from planning.models.calibration import OutcomeKind, work_label


class OutcomeForm(forms.Form):
    """One measured figure beside its estimate."""

    reference = forms.CharField(
        label=_("What was measured"), max_length=120, help_text=_("For example: acceptance of R-0042, 64 cards")
    )  # fmt: skip
    kind = forms.ChoiceField(label=_("Kind"), choices=OutcomeKind.choices)
    accelerator_slug = forms.ChoiceField(label=_("Accelerator"), required=False)
    work = forms.ChoiceField(
        label=_("Class of work"), required=False,
        choices=lambda: [("", "–"), *((name, work_label(name)) for name in dict.fromkeys(CLASSES.values()))],
    )  # fmt: skip
    team = forms.ModelChoiceField(
        Team.objects.filter(active=True), label=_("Team"), required=False, empty_label="–"
    )
    estimated = forms.FloatField(label=_("Estimated"), min_value=0)
    low = forms.FloatField(label=_("P10 of the estimate"), required=False)
    high = forms.FloatField(label=_("P90 of the estimate"), required=False)
    measured = forms.FloatField(label=_("Measured"), min_value=0)
    unit = forms.CharField(label=_("Unit"), max_length=16)
    measured_at = forms.DateTimeField(
        label=_("Measured on"), widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["accelerator_slug"].choices = [  # type: ignore[attr-defined]
            ("", "–"),
            *Accelerator.objects.order_by("name").values_list("slug", "name"),
        ]
