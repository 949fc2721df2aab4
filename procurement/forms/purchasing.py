"""The form of the purchasing policy. The service holds the limits and names them."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from procurement.models import PurchasingPolicy
from procurement.services.policy import FIELDS


class PurchasingPolicyForm(forms.ModelForm):  # type: ignore[type-arg]
    """All values; cleaned data are the service's keywords."""

    class Meta:
        model = PurchasingPolicy
        fields = list(FIELDS)
        help_texts: ClassVar[dict[str, Any]] = {
            "openers": _("From 1 to 5."),
            "minimum_vendors": _("From 1 to 20."),
            "reason_length": _("From 1 to 1000."),
            "over_delivery": _("Share of the ordered quantity, from 0 to 0.2."),
            "price_tolerance": _("Share of the ordered unit price, from 0 to 0.1."),
            "burn_in_hours": _("From 1 to 720."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["openers"].validators = []

    def _post_clean(self) -> None:
        """The service checks, and names field, value and limit."""
