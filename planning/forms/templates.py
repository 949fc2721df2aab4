"""Templates, and one request into several."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from core.forms import DateInput


class TemplateForm(forms.Form):
    """A name to find it by."""

    name = forms.CharField(label=_("Name of the template"), max_length=120)


class TemplateUseForm(forms.Form):
    """When it is needed this time."""

    need_by = forms.DateField(label=_("Needed by"), required=False, widget=DateInput())


class SplitForm(forms.Form):
    """Shares in per cent, as people write them: 50, 30, 20 or 50 / 30 / 20."""

    shares = forms.CharField(
        label=_("Shares in per cent"),
        initial="50 / 50",
        help_text=_("Two to ten numbers that sum to 100, for example 50 / 30 / 20."),
    )

    def clean_shares(self) -> list[Decimal]:
        text = self.cleaned_data["shares"].replace("%", " ")
        for sign in "/;、，,":
            text = text.replace(sign, " ")
        try:
            return [Decimal(part) for part in text.split()]
        except InvalidOperation:
            raise ValidationError(
                _("%(value)s is not a list of numbers like 50 / 30 / 20."),
                params={"value": self.cleaned_data["shares"]},
            ) from None
