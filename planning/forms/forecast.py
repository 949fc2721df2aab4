"""What is tried on the ledger, and which month is shown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from core.models import CURRENCY_CHOICES, Team
from planning.services.scenarios import Change, orders_to_move


class ForecastForm(forms.Form):
    """Which year and team."""

    year = forms.IntegerField(
        label=_("Fiscal year"), required=False, min_value=2000, max_value=2200
    )
    team = forms.ModelChoiceField(
        Team.objects.none(),
        label=_("Team"),
        required=False,
        to_field_name="slug",
        empty_label=_("All"),
    )

    def __init__(self, data: Any, *, teams: Any) -> None:
        super().__init__(data)
        self.fields["team"].queryset = teams  # type: ignore[attr-defined]


class MonthForm(forms.Form):
    """A month as 2026-11."""

    month = forms.DateField(
        label=_("Month"), required=False, input_formats=["%Y-%m", "%Y-%m-%d"],
        widget=forms.TextInput(attrs={"type": "month"}),
    )  # fmt: skip


class ScenarioForm(forms.Form):
    """What is tried; every part may stay empty."""

    order = forms.ChoiceField(label=_("Order"), required=False)
    quarters = forms.IntegerField(
        label=_("moves by quarters"), required=False, min_value=-8, max_value=8,
        help_text=_("1: a quarter later, -1: a quarter earlier."),
    )  # fmt: skip
    currency = forms.ChoiceField(
        label=_("Currency"), required=False, choices=[("", "–"), *CURRENCY_CHOICES]
    )
    rate_percent = forms.DecimalField(
        label=_("costs more by (%)"), required=False, max_digits=7, decimal_places=2
    )
    accelerator = forms.CharField(
        label=_("Accelerator"), required=False, max_length=80,
        help_text=_("Short name in the catalogue."),
    )  # fmt: skip
    price_percent = forms.DecimalField(
        label=_("costs more by (%)"), required=False, max_digits=7, decimal_places=2
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        orders = [(source, source.removeprefix("order:")) for source in orders_to_move()]
        self.fields["order"].choices = [("", "–"), *orders]  # type: ignore[attr-defined]

    def change(self) -> Change:
        """What was typed, as the service takes it."""
        data = self.cleaned_data
        return Change(
            order=data["order"],
            quarters=data["quarters"] or 0,
            currency=data["currency"],
            rate_percent=data["rate_percent"] or Decimal(0),
            accelerator=data["accelerator"].strip(),
            price_percent=data["price_percent"] or Decimal(0),
        )
