"""Forms of the look back and of its rules."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.models import Team
from planning.models.month_one import ReviewRules
from planning.models.review_schedules import ReviewSchedule
from planning.services.month_one import RULE_FIELDS


class AnswerForm(forms.Form):
    """What the owner did about it."""

    answer = forms.CharField(
        label=_("What was done about it"), widget=forms.Textarea(attrs={"rows": 3})
    )
    version = forms.IntegerField(widget=forms.HiddenInput)


class RulesForm(forms.ModelForm):  # type: ignore[type-arg]
    """The organisation's rules of reviews."""

    class Meta:
        model = ReviewRules
        fields = list(RULE_FIELDS)


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]
    """One unit's calendar of reviews."""

    class Meta:
        model = ReviewSchedule
        fields = ["start_month", "meeting_after_days", "at_hour", "active"]


class NewScheduleForm(ScheduleForm):
    """A team that is to hold reviews of its own."""

    team = forms.ModelChoiceField(Team.objects.filter(active=True), label=_("Team"))
    field_order = ["team"]
