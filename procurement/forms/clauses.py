"""A clause of the library: a new one, or a new version of one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from procurement.forms.fields import text
from procurement.models import Clause


class ClauseForm(forms.Form):
    code = forms.SlugField(
        label=_("Short name"), max_length=60,
        help_text=_("Small letters, digits and hyphens; it stays through all versions."),
    )  # fmt: skip
    title_en = forms.CharField(label=_("Title (English)"), max_length=120)
    title_zh = forms.CharField(label=_("Title (Chinese)"), max_length=120)
    text_en = text(_("Text (English)"), rows=5)
    text_zh = text(_("Text (Chinese)"), rows=5)
    preset = forms.BooleanField(label=_("Preset in a new RFQ"), required=False, initial=True)
    in_use = forms.BooleanField(label=_("In use"), required=False, initial=True)
    reason = forms.CharField(label=_("Why it is changed"), max_length=300)

    def __init__(self, *args: Any, clause: Clause | None = None, **options: Any) -> None:
        if clause is not None:
            names = ("title_en", "title_zh", "text_en", "text_zh", "preset", "in_use")
            options["initial"] = {name: getattr(clause, name) for name in names}
        super().__init__(*args, **options)
        if clause is None:
            del self.fields["reason"], self.fields["in_use"]
        else:
            del self.fields["code"]
