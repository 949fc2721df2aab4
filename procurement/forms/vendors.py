"""The vendor form."""

from __future__ import annotations

from django import forms

from procurement.models import Vendor
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
