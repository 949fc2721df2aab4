"""Tables of requests, and filters to keep."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class RequestImportForm(forms.Form):
    """A table."""

    file = forms.FileField(
        label=_("Table"),
        help_text=_("CSV or XLSX, at most 500 rows. You see what becomes of each row first."),
    )


class SaveFilterForm(forms.Form):
    """A name for what the list shows now."""

    name = forms.CharField(label=_("Name"), max_length=80)
    shared = forms.BooleanField(
        label=_("Share with everyone"), required=False,
        help_text=_("Whoever opens it sees only what they may see."),
    )  # fmt: skip
    query = forms.CharField(widget=forms.HiddenInput, required=False)
