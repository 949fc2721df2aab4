"""Form fields from the declarations of ``planning.study``: one source of names, labels, units and choices.

The fields hold what was typed; ``parse_request`` (or ``normalise``) checks it, so page, API and commands refuse alike.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext

from core.errors import InputError
from core.forms import DateInput
from core.messages import Message
from planning.study.fields import Field


def declared_field(declared: Field) -> forms.Field:
    """The form field of one declaration, in the language in force."""
    common: dict[str, Any] = {
        "label": declared.label.render(gettext),
        "help_text": declared.help.render(gettext) if declared.help else "",
        "required": declared.required,
    }
    field: forms.Field
    if declared.type == "choice":
        choices = [(code, label.render(gettext)) for code, label in declared.choices]
        if declared.default is None:
            choices.insert(0, ("", gettext("Not told")))
        field = forms.ChoiceField(choices=choices, **common)
    elif declared.type == "flag":
        flags = [("true", gettext("Yes")), ("false", gettext("No"))]
        field = forms.ChoiceField(choices=[("", gettext("Not told")), *flags], **common)
    elif declared.type == "config":
        widget = forms.Textarea(attrs={"rows": 6, "spellcheck": "false"})
        field = forms.CharField(widget=widget, **common)
    elif declared.type == "date":
        field = forms.CharField(widget=DateInput(), **common)
    else:
        attrs = {"autocomplete": "off"}
        if declared.type in ("count", "number", "share", "amount"):
            attrs["inputmode"] = "text"  # "7B" and "5 %" are numbers here
        field = forms.CharField(widget=forms.TextInput(attrs=attrs), **common)
    if declared.default is not None and isinstance(field.widget, forms.TextInput):
        field.widget.attrs["placeholder"] = f"{declared.default}"
    setattr(field, "unit", unit_text(declared))  # noqa: B010 - drawn by components/field.html
    return field


def unit_text(declared: Field) -> str:
    """The unit to show behind the box; none where the label says it."""
    return declared.unit if declared.unit in ("B", "B/s", "s", "h", "d", "FLOP") else ""


def error_text(error: InputError, labels: dict[str, str]) -> str:
    """The refusal in the reader's language, with the field's label instead of its code."""
    params = dict(error.message.params)
    if "field" in params:
        params["field"] = labels.get(str(params["field"]), str(params["field"]))
    return Message(error.message.template, params).render(gettext)
