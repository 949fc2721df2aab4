"""Decisions, stand-ins and presets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from core.forms import DateInput
from core.models import CURRENCY_CHOICES, User
from planning.models.approvals import Decision, Preset


class DecisionForm(forms.Form):
    """A decision on what was on the screen (`seen_hash`)."""

    decision = forms.ChoiceField(choices=Decision.choices, widget=forms.HiddenInput())
    seen_hash = forms.CharField(max_length=64, widget=forms.HiddenInput())
    reason = forms.CharField(
        label=_("Reason"), required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 3})
    )


class DelegationForm(forms.Form):
    """Who decides for me, and on which days."""

    delegate = forms.ModelChoiceField(User.objects.none(), label=_("Stand-in"))
    first_day = forms.DateField(label=_("First day"), widget=DateInput())
    last_day = forms.DateField(label=_("Last day"), widget=DateInput())
    reason = forms.CharField(label=_("Reason"), required=False, max_length=200)

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data)
        people = User.objects.filter(is_active=True).exclude(pk=user.pk)
        self.fields["delegate"].queryset = people  # type: ignore[attr-defined]


class PresetForm(forms.Form):
    """Which preset to put in force."""

    preset = forms.ChoiceField(label=_("Preset"), choices=Preset.choices)


class LimitForm(forms.Form):
    """A person's limit; empty lifts it."""

    user = forms.ModelChoiceField(User.objects.filter(is_active=True), label=_("Person"))
    amount = forms.DecimalField(
        label=_("Limit"), required=False, min_value=0, max_digits=18, decimal_places=2,
        help_text=_("Empty: no personal limit."),
    )  # fmt: skip
    currency = forms.ChoiceField(label=_("Currency"), choices=CURRENCY_CHOICES)
