"""Booking cards."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from core.forms import DateInput


class BookForm(forms.Form):
    """How many, from when to when. Checks stay with the service."""

    cards = forms.IntegerField(label=_("Accelerators"), min_value=1)
    first_day = forms.DateField(label=_("First day"), widget=DateInput())
    last_day = forms.DateField(label=_("Last day"), widget=DateInput())
