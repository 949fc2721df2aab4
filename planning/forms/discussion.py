"""What is said and brought to a request."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class CommentForm(forms.Form):
    """One comment. Checks stay with the service."""

    text = forms.CharField(
        label=_("Comment"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "maxlength": 5000}),
        help_text=_("@name tells a person; only people who may see the request can be named."),
    )


class FileForm(forms.Form):
    """One paper."""

    file = forms.FileField(
        label=_("File"), help_text=_("PDF, image, spreadsheet or text; at most 25 MB.")
    )
    note = forms.CharField(label=_("Note"), required=False, max_length=200)
