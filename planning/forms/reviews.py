"""Forms of capacity reviews."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _


class FreezeForm(forms.Form):
    """Freeze the figures; a reason when they were frozen before."""

    reason = forms.CharField(label=_("Reason"), max_length=300, required=False)
    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, again: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = again
        if not again:
            self.fields["reason"].widget = forms.HiddenInput()


class CloseForm(forms.Form):
    """Minutes of the meeting."""

    minutes = forms.CharField(label=_("Minutes"), widget=forms.Textarea(attrs={"rows": 5}))
    version = forms.IntegerField(widget=forms.HiddenInput)
