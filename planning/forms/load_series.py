"""Files of hours: the load of a service, prices of spot."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from core.imports import ENCODINGS


class LoadSeriesForm(forms.Form):
    """A CSV of hours, and how its times and letters are to be read."""

    file = forms.FileField(
        label=_("CSV of hours"),
        help_text=_("A header with time and value, perhaps unit; one row for each hour, 168 to 8,784 of them."),
    )  # fmt: skip
    zone = forms.CharField(
        label=_("Time zone"), max_length=64,
        help_text=_("Of times that bear no offset, and of the week that is followed: Asia/Shanghai."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )  # fmt: skip
    encoding = forms.ChoiceField(
        label=_("Encoding"), required=False, choices=[("", _("UTF-8, UTF-16")), *ENCODINGS.items()]
    )
