"""Forms of action items, teams' plans and the meeting's day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from core.models import Team, User
from planning.models.budgets import Budget


class ActionForm(forms.Form):
    """A decision with an owner and a day."""

    text = forms.CharField(label=_("Decision"), max_length=500)
    pool = forms.ChoiceField(label=_("Pool"), required=False)
    owner = forms.ModelChoiceField(User.objects.filter(is_active=True), label=_("Who does it"))
    due_on = forms.DateField(label=_("By"), widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, data: Any = None, *, pools: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(data)
        self.fields["pool"].choices = [("", "–"), *pools]  # type: ignore[attr-defined]


class FileRequestForm(forms.Form):
    """What the request asks for; all of it may be known already."""

    team = forms.ModelChoiceField(Team.objects.none(), label=_("Team"))
    accelerator = forms.CharField(
        label=_("Accelerator"), max_length=120, required=False,
        help_text=_("Short name in the catalogue, for example nvidia-h100-sxm5-80gb. Empty: chosen by the study."),
    )  # fmt: skip
    cards = forms.IntegerField(label=_("Cards"), min_value=1, max_value=100_000)
    need_by = forms.DateField(
        label=_("Needed by"), widget=forms.DateInput(attrs={"type": "date"}), required=False
    )

    def __init__(self, data: Any = None, *, teams: QuerySet[Team], initial: Any = None) -> None:
        super().__init__(data, initial=initial)
        self.fields["team"].queryset = teams  # type: ignore[attr-defined]


class FileTransferForm(forms.Form):
    """What the transfer moves."""

    giver = forms.ModelChoiceField(Budget.objects.none(), label=_("From budget"))
    receiver = forms.ModelChoiceField(Budget.objects.none(), label=_("To budget"))
    amount = forms.DecimalField(label=_("Amount"), max_digits=18, decimal_places=2)
    reason = forms.CharField(label=_("Reason"), max_length=300, required=False)

    def __init__(self, data: Any = None, *, budgets: QuerySet[Budget], initial: Any = None) -> None:
        super().__init__(data, initial=initial)
        for name in ("giver", "receiver"):
            self.fields[name].queryset = budgets  # type: ignore[attr-defined]


class EndForm(forms.Form):
    """What became of an item."""

    outcome = forms.CharField(max_length=500, required=False)
    reference = forms.CharField(max_length=20, required=False)
    done = forms.BooleanField(required=False)
    version = forms.IntegerField(required=False)


class PlanForm(forms.Form):
    """What a team expects."""

    cards = forms.FloatField(label=_("Cards busy on average"), min_value=0)
    text = forms.CharField(
        label=_("What for"), max_length=2000, widget=forms.Textarea(attrs={"rows": 4})
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)


class MeetingForm(forms.Form):
    """Who takes part and what is talked about."""

    agenda = forms.CharField(
        label=_("Agenda"), max_length=4000, required=False, widget=forms.Textarea(attrs={"rows": 6}),
        help_text=_("Empty: the usual one."),
    )  # fmt: skip
    people = forms.ModelMultipleChoiceField(
        User.objects.none(), label=_("Participants"), required=False,
        widget=forms.CheckboxSelectMultiple(),
        help_text=_("Nobody chosen: all who may read reviews."),
    )  # fmt: skip
    version = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, people: Sequence[User], **options: Any) -> None:
        super().__init__(data, **options)
        chosen = User.objects.filter(pk__in=[user.pk for user in people])
        self.fields["people"].queryset = chosen  # type: ignore[attr-defined]


class CancelForm(forms.Form):
    """Why the meeting is called off."""

    reason = forms.CharField(label=_("Reason"), max_length=300)
    version = forms.IntegerField(widget=forms.HiddenInput)


class MoveForm(forms.Form):
    """Another day."""

    meeting_on = forms.DateField(
        label=_("Day of the meeting"), widget=forms.DateInput(attrs={"type": "date"})
    )
    version = forms.IntegerField(widget=forms.HiddenInput)
