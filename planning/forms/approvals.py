"""Decisions, stand-ins and presets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _

from core.forms import DateInput
from core.models import CURRENCY_CHOICES, Team, User
from core.money import Money
from core.organisation import today
from planning.models.approvals import ApprovalPolicy, Authority, Decision, Preset
from planning.models.plans import SpendKind
from planning.places import residence_choices
from planning.services.policy_edit import OPTIONS, RULE_FIELDS


class DecisionForm(forms.Form):
    """A decision on what was on the screen (`seen_hash`)."""

    decision = forms.ChoiceField(choices=Decision.choices, widget=forms.HiddenInput())
    seen_hash = forms.CharField(max_length=64, widget=forms.HiddenInput())
    reason = forms.CharField(
        label=_("Reason"), required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 3})
    )

    cap_amount = forms.DecimalField(
        label=_("Up to"), required=False, max_digits=18, decimal_places=2
    )
    cap_currency = forms.ChoiceField(
        label=_("Currency"), required=False, choices=[("", "–"), *CURRENCY_CHOICES]
    )
    order_by = forms.DateField(label=_("To be ordered by"), required=False, widget=DateInput())

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        amount, currency = data.pop("cap_amount", None), data.pop("cap_currency", "")
        if amount is not None and not currency:
            self.add_error("cap_currency", _("Name the currency of the amount."))
        elif amount is not None and amount <= 0:
            self.add_error(
                "cap_amount", _("%(value)s is not above 0") % {"value": f"{amount} {currency}"}
            )
        order_by, day = data.get("order_by"), today()
        if order_by is not None and order_by < day:
            self.add_error(
                "order_by",
                _("%(value)s is before today, %(limit)s")
                % {"value": date_format(order_by), "limit": date_format(day)},
            )
        decision = data.get("decision")
        if decision in (Decision.RETURN, Decision.REJECT) and not data.get("reason"):
            self.add_error("reason", _("Give a reason"))
        data["cap"] = Money(amount, currency) if amount is not None and currency else None
        return data


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

    preset = forms.ChoiceField(
        label=_("Preset"),
        choices=[(code, name) for code, name in Preset.choices if code != Preset.CUSTOM],
    )


class LimitForm(forms.Form):
    """A person's limit; empty lifts it."""

    user = forms.ModelChoiceField(User.objects.filter(is_active=True), label=_("Person"))
    amount = forms.DecimalField(
        label=_("Limit"), required=False, min_value=0, max_digits=18, decimal_places=2,
        help_text=_("Empty: no personal limit."),
    )  # fmt: skip
    currency = forms.ChoiceField(label=_("Currency"), choices=CURRENCY_CHOICES)


class RuleForm(forms.Form):
    """One agreement, and when it is asked for. Checks stay with the service."""

    group = forms.IntegerField(label=_("Group"), min_value=1, max_value=20, initial=1)
    authority = forms.ChoiceField(label=_("Who"), choices=Authority.choices)
    quorum = forms.IntegerField(label=_("Votes needed"), min_value=1, max_value=9, initial=1)
    above = forms.DecimalField(label=_("Above"), required=False, max_digits=18, decimal_places=2)
    above_currency = forms.ChoiceField(
        label=_("Currency"), required=False, choices=[("", "–"), *CURRENCY_CHOICES]
    )
    spend_kind = forms.ChoiceField(
        label=_("Budget"), required=False, choices=[("", _("Any")), *SpendKind.choices]
    )
    team = forms.ModelChoiceField(
        Team.objects.all(), label=_("Team"), required=False, empty_label=_("Any")
    )
    residence = forms.ChoiceField(
        label=_("Data residence"),
        required=False,
        choices=lambda: [("", _("Any")), *residence_choices()],
    )
    over_budget_only = forms.BooleanField(label=_("Only over budget"), required=False)
    low_use_only = forms.BooleanField(
        label=_("Only when the team uses little of what it has"), required=False
    )


RuleFormSet = forms.formset_factory(RuleForm, extra=2, can_delete=True, max_num=40)


class PolicyOptionsForm(forms.ModelForm):  # type: ignore[type-arg]
    """What holds beside the rules, and why it changes."""

    note = forms.CharField(label=_("What changes, and why"), max_length=300)

    class Meta:
        model = ApprovalPolicy
        fields = OPTIONS


def rules_of(policy: ApprovalPolicy) -> list[dict[str, Any]]:
    """A version's rules as the formset starts with them."""
    return [{name: getattr(rule, name) for name in RULE_FIELDS} for rule in policy.rules.all()]


def given_rules(formset: Any) -> list[dict[str, Any]]:
    """The rules as typed, without empty and deleted rows."""
    return [
        {name: value for name, value in form.cleaned_data.items() if name in RULE_FIELDS}
        for form in formset
        if form.has_changed() or form.initial
        if form.cleaned_data and not form.cleaned_data.get("DELETE")
    ]
