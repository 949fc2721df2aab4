"""Several files in one field."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from procurement.models import Asset


class SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files. An empty one is kept here: the service refuses it by name, and takes the others."""

    widget = SeveralFiles

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_empty_file=True, **options)

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        given = data if isinstance(data, list | tuple) else [data] if data else []
        if not given:
            super().clean(None, initial)
        # Names are cut and cleaned when a file is stored; Django would refuse a long one here.
        return [file for file in given if file]


class EvidenceForm(forms.Form):
    """What tools printed, for all units of a delivery or for one server."""

    uploads = FilesField(
        label=_("Files"),
        help_text=_("Several at once: gpu-burn, nvidia-smi -q, dcgmi diag, kernel logs; photos too."),
    )  # fmt: skip
    node: forms.ModelChoiceField[Asset] = forms.ModelChoiceField(
        queryset=Asset.objects.none(), required=False, label=_("Of server"), empty_label=_("any")
    )

    def __init__(self, *args: Any, nodes: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if nodes is None or not nodes.exists():
            del self.fields["node"]
        else:
            self.fields["node"].queryset = nodes  # type: ignore[attr-defined]


class PhotoForm(forms.Form):
    """Photos of packaging, labels and units, taken with the phone that scans."""

    uploads = FilesField(
        label=_("Photos"),
        widget=SeveralFiles(attrs={"accept": "image/*", "capture": "environment"}),
        help_text=_("Packaging, seals, shock and tilt labels, serial number labels."),
    )
