"""What is assumed of a stage."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _


class PriorForm(forms.Form):
    """Assumed share in per cent, and what it counts for. Checks stay with the service."""

    stage = forms.CharField(max_length=20, widget=forms.HiddenInput())
    version = forms.IntegerField(required=False, widget=forms.HiddenInput())
    percent = forms.DecimalField(label=_("Assumed share"), max_digits=5, decimal_places=1)
    weight = forms.IntegerField(label=_("Counts for so many requests"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["percent"].unit = "%"  # type: ignore[attr-defined]
