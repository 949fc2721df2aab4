"""Forms drawn by our own field template, everywhere."""

from django import forms
from django.forms.renderers import TemplatesSetting

from core.models import User


class ProjectFormRenderer(TemplatesSetting):
    """`{{ form }}` and `{{ field.as_field_group }}` use components/field.html."""

    form_template_name = "components/form.html"
    field_template_name = "components/field.html"


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]
    """Name, language and zone of the signed-in user."""

    class Meta:
        model = User
        fields = ["name", "language", "time_zone"]
