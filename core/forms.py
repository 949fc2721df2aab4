"""Forms drawn by our own field template, everywhere."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.fields import InvalidJSONInput
from django.forms.renderers import TemplatesSetting
from django.utils.translation import gettext_lazy as _

from core.errors import DomainError, InputError
from core.models import Job, User
from core.strict_json import JSONProblem, read_json
from core.templatetags.ui import said


class ProjectFormRenderer(TemplatesSetting):
    """`{{ form }}` and `{{ field.as_field_group }}` use components/field.html."""

    form_template_name = "components/form.html"
    field_template_name = "components/field.html"


def refuse(form: forms.BaseForm, error: DomainError) -> None:
    """Show a domain error in `form`: at its field when the form has one of that name, else above the fields."""
    field = error.field if isinstance(error, InputError) and error.field in form.fields else None
    form.add_error(field, ValidationError(said(error.message), code=error.code))


class StrictJSONField(forms.JSONField):
    """JSON that every store can keep; what is not is told, and shown again as it was typed."""

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and value not in self.empty_values:
            try:
                read_json(value)
            except JSONProblem as problem:
                raise ValidationError(said(problem.message), code="invalid") from None
        return super().to_python(value)

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return super().bound_data(data, initial)
        except RecursionError:
            return InvalidJSONInput(data)


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]
    """Name, language and zone of the signed-in user."""

    class Meta:
        model = User
        fields = ["name", "language", "time_zone"]
        labels = {"name": _("Your name"), "language": _("Language"), "time_zone": _("Time zone")}
        help_texts = {
            "language": _("Used for pages, mails and notices. Empty: as the browser asks."),
            "time_zone": _("For example Asia/Shanghai. Empty: the organisation's zone."),
        }
        widgets = {"time_zone": forms.TextInput(attrs={"list": "zones", "autocomplete": "off"})}


class DateInput(forms.DateInput):
    """The browser's own date picker."""

    input_type = "date"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(format="%Y-%m-%d", **kwargs)


class AuditFilterForm(forms.Form):
    """What to show of the audit trail. Every field may stay empty."""

    text = forms.CharField(label=_("Object"), required=False, max_length=100)
    action = forms.CharField(
        label=_("Action begins with"),
        required=False,
        max_length=80,
        widget=forms.TextInput(attrs={"placeholder": "rfq.", "list": "actions"}),
    )
    who = forms.CharField(label=_("Who (name or e-mail)"), required=False, max_length=100)
    since = forms.DateField(label=_("From"), required=False, widget=DateInput())
    until = forms.DateField(label=_("Until"), required=False, widget=DateInput())

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        since, until = data.get("since"), data.get("until")
        if since and until and until < since:
            raise ValidationError(
                {
                    "until": _("%(until)s is before %(since)s.")
                    % {"until": until.isoformat(), "since": since.isoformat()}
                }
            )
        return data


class JobFilterForm(forms.Form):
    """Which background jobs to show."""

    status = forms.ChoiceField(
        label=_("State"), required=False, choices=[("", _("All")), *Job.Status.choices]
    )
