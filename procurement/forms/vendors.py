"""The vendor form."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from procurement.forms.fields import day
from procurement.models import Vendor
from procurement.models.vendors import DocumentKind
from procurement.services.vendors import FIELDS


class VendorForm(forms.ModelForm):  # type: ignore[type-arg]
    """A vendor's data; cleaned data are the service's keywords."""

    class Meta:
        model = Vendor
        fields = list(FIELDS)
        widgets = {
            "address": forms.Textarea(attrs={"rows": 3}),
            "notes": forms.Textarea(attrs={"rows": 3}),
        }

    def validate_unique(self) -> None:
        """The service says it, in words that name the twin."""

    def validate_constraints(self) -> None:
        """As validate_unique."""


class DocumentForm(forms.Form):
    """A vendor's paper."""

    kind = forms.ChoiceField(label=_("Kind"), choices=DocumentKind.choices)
    title = forms.CharField(label=_("Title"), max_length=160)
    number = forms.CharField(label=_("Number"), max_length=80, required=False)
    issued_on = day(_("Issued on"), required=False)
    expires_on = day(
        _("Holds until (last day)"), required=False,
        help_text=_("Empty: it has no end. Procurement is reminded 60, 30 and 7 days before."),
    )  # fmt: skip
    file = forms.FileField(
        label=_("File"), required=False,
        help_text=_("PDF, picture, spreadsheet or text. Kept with its hash."),
    )  # fmt: skip
