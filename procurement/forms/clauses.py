"""A clause of the library: a new one, or a new version of one."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from procurement.forms.fields import text
from procurement.models import Clause
from procurement.precedence import AT_LEAST, CHOICES, PROMISED
from procurement.selectors.precedence import label_of, shown_term


class ClauseForm(forms.Form):
    code = forms.SlugField(
        label=_("Short name"), max_length=60,
        help_text=_("Small letters, digits and hyphens; it stays through all versions."),
    )  # fmt: skip
    title_en = forms.CharField(label=_("Title (English)"), max_length=120)
    title_zh = forms.CharField(label=_("Title (Chinese)"), max_length=120)
    text_en = text(_("Text (English)"), rows=5)
    text_zh = text(_("Text (Chinese)"), rows=5)
    promised = forms.MultipleChoiceField(
        label=_("It asks for"), required=False, widget=forms.CheckboxSelectMultiple,
        help_text=_("As data: an order shows where the quote says less than this."),
    )  # fmt: skip
    preset = forms.BooleanField(label=_("Preset in a new RFQ"), required=False, initial=True)
    in_use = forms.BooleanField(label=_("In use"), required=False, initial=True)
    reason = forms.CharField(label=_("Why it is changed"), max_length=300)

    def __init__(self, *args: Any, clause: Clause | None = None, **options: Any) -> None:
        if clause is not None:
            names = ("title_en", "title_zh", "text_en", "text_zh", "preset", "in_use")
            options["initial"] = {name: getattr(clause, name) for name in names}
            options["initial"] |= {f"asks_{name}": value for name, value in clause.asks.items()}
            options["initial"]["promised"] = [name for name in PROMISED if name in clause.asks]
        super().__init__(*args, **options)
        promised = cast("forms.MultipleChoiceField", self.fields["promised"])
        promised.choices = [  # type: ignore[attr-defined]
            (name, label_of(name)) for name in PROMISED
        ]
        for name, most in AT_LEAST.items():
            self.fields[f"asks_{name}"] = forms.IntegerField(
                label=gettext("At least: %(term)s") % {"term": label_of(name)}, required=False,
                min_value=1, max_value=most,
            )  # fmt: skip
        for name, values in CHOICES.items():
            self.fields[f"asks_{name}"] = forms.ChoiceField(
                label=label_of(name), required=False,
                choices=[("", gettext("nothing asked")), *((value, shown_term(name, value)) for value in values)],
            )  # fmt: skip
        self.order_fields(
            [
                *list(self.fields)[:5],
                "promised",
                *(f"asks_{name}" for name in (*AT_LEAST, *CHOICES)),
            ]
        )
        if clause is None:
            del self.fields["reason"], self.fields["in_use"]
        else:
            del self.fields["code"]

    def service_arguments(self) -> dict[str, Any]:
        """What `write_clause` takes."""
        given = dict(self.cleaned_data)
        asks: dict[str, Any] = {name: True for name in given.pop("promised")}
        for name in (*AT_LEAST, *CHOICES):
            if value := given.pop(f"asks_{name}"):
                asks[name] = value
        return {**given, "asks": asks}
