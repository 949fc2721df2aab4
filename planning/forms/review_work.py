"""Forms of action items, teams' plans and the meeting's day."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.models import User


class ActionForm(forms.Form):
    """A decision with an owner and a day."""

    text = forms.CharField(label=_("Decision"), max_length=500)
    pool = forms.CharField(label=_("Pool"), max_length=200, required=False)
    owner = forms.ModelChoiceField(User.objects.filter(is_active=True), label=_("Who does it"))
    due_on = forms.DateField(label=_("By"), widget=forms.DateInput(attrs={"type": "date"}))


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


class MoveForm(forms.Form):
    """Another day."""

    meeting_on = forms.DateField(
        label=_("Day of the meeting"), widget=forms.DateInput(attrs={"type": "date"})
    )
    version = forms.IntegerField(widget=forms.HiddenInput)
