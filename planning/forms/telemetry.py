"""Forms of telemetry sources and loads."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from catalog.models import Accelerator
from core.forms import StrictJSONField
from planning.models.telemetry import TelemetrySource
from planning.services.telemetry_sources import FIELDS


class SourceForm(forms.ModelForm):  # type: ignore[type-arg]
    """A source; the mapping is written as JSON."""

    class Meta:
        model = TelemetrySource
        fields = list(FIELDS)
        field_classes = {"mapping": StrictJSONField}
        help_texts = {
            "mapping": _(
                'JSON: {"teams": {"node-a*": "search"}, "accelerators": {"NVIDIA H100*": "h100-sxm-80gb"}, '
                '"columns": {"job": "Job ID"}}'
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["accelerator_slug"] = forms.ChoiceField(
            label=_("Accelerator"),
            required=False,
            choices=lambda: [
                ("", _("told by the data")),
                *Accelerator.objects.order_by("name").values_list("slug", "name"),
            ],
        )
        self.fields["mapping"].required = False
        if self.instance.pk:
            del self.fields["kind"]
            self.fields["version"] = forms.IntegerField(
                widget=forms.HiddenInput, initial=self.instance.version
            )

    def clean_mapping(self) -> Any:
        return self.cleaned_data.get("mapping") or {}

    def _post_clean(self) -> None:
        """The service checks and saves; here is only the form of each field."""


class LoadForm(forms.Form):
    """A file of a source."""

    file = forms.FileField(label=_("File"), allow_empty_file=True)
