"""Money into budgets and between them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from core.models import CURRENCY_CHOICES, Team
from planning.models import Budget
from planning.models.plans import SpendKind


class OpenBudgetForm(forms.Form):
    """A budget row for a team and a quarter."""

    team = forms.ModelChoiceField(Team.objects.filter(active=True), label=_("Team"))
    quarter = forms.RegexField(
        r"^\d{4}[Qq][1-4]$", label=_("Quarter"), help_text=_("For example 2027Q1.")
    )
    kind = forms.ChoiceField(label=_("Kind"), choices=SpendKind.choices)
    currency = forms.ChoiceField(label=_("Currency"), choices=CURRENCY_CHOICES)


class AllotForm(forms.Form):
    """An amount and why."""

    amount = forms.DecimalField(
        label=_("Amount"), max_digits=18, decimal_places=2, help_text=_("Below 0 takes back.")
    )
    reason = forms.CharField(label=_("Reason"), max_length=300)


class TransferForm(forms.Form):
    """An amount, to which budget, and why."""

    receiver = forms.ModelChoiceField(Budget.objects.none(), label=_("To budget"))
    amount = forms.DecimalField(label=_("Amount"), max_digits=18, decimal_places=2)
    reason = forms.CharField(label=_("Reason"), max_length=300)

    def __init__(self, data: Any = None, *, giver: Budget, choices: QuerySet[Budget]) -> None:
        super().__init__(data)
        others = choices.filter(closed_at=None, currency=giver.currency).exclude(pk=giver.pk)
        self.fields["receiver"].queryset = others.select_related("team")  # type: ignore[attr-defined]


class CloseForm(forms.Form):
    """What happens to money that nobody asked for."""

    carry_unused = forms.BooleanField(
        label=_("Carry unused money over to the next quarter"), required=False
    )
