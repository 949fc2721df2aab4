"""A price history and the work that would run on spot."""

from __future__ import annotations

from decimal import Decimal

from django import forms
from django.utils.translation import gettext_lazy as _

from core.imports import ENCODINGS
from core.models import CURRENCY_CHOICES
from core.money import Money
from planning.economics import defaults
from planning.economics.bids import BidJob


class BidForm(forms.Form):
    """What is to be run, and over which prices. Minutes become hours."""

    file = forms.FileField(
        label=_("Price history"),
        help_text=_(
            "CSV with timestamp and price (perhaps currency and zone), or the JSON of AWS or Alibaba Cloud."
        ),
    )  # fmt: skip
    series = forms.CharField(
        label=_("Zone and instance type"), required=False, max_length=200,
        help_text=_("Only where the history has several: as the message lists them."),
    )  # fmt: skip
    on_demand = forms.DecimalField(
        label=_("On-demand price of an hour"), min_value=Decimal("0.000001"), max_digits=18, decimal_places=6
    )  # fmt: skip
    currency = forms.ChoiceField(label=_("Currency"), choices=CURRENCY_CHOICES)
    work_hours = forms.FloatField(
        label=_("Work"), min_value=0.01, max_value=1e6, help_text=_("Undisturbed.")
    )
    interval_minutes = forms.FloatField(label=_("Checkpoint interval"), min_value=0.1, initial=30)
    checkpoint_minutes = forms.FloatField(label=_("Time of a checkpoint"), min_value=0, initial=1)
    restart_minutes = forms.FloatField(label=_("Restart after a reclaim"), min_value=0, initial=15)
    notice_seconds = forms.FloatField(
        label=_("Notice before a reclaim"),
        min_value=0,
        initial=defaults.value("spot.notice_seconds"),
    )
    encoding = forms.ChoiceField(
        label=_("Encoding"), required=False, choices=[("", _("UTF-8, UTF-16")), *ENCODINGS.items()]
    )

    FIELDS = {
        "interval_hours": "interval_minutes", "checkpoint_hours": "checkpoint_minutes",
        "restart_hours": "restart_minutes", "notice_hours": "notice_seconds",
    }  # fmt: skip

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        units = {"work_hours": "h", "notice_seconds": "s"}
        for name in (
            "work_hours",
            "interval_minutes",
            "checkpoint_minutes",
            "restart_minutes",
            "notice_seconds",
        ):
            setattr(self.fields[name], "unit", units.get(name, "min"))  # noqa: B010 - drawn by components/field.html

    def job(self) -> BidJob:
        """The work of the form. Raises InputError."""
        data = self.cleaned_data
        return BidJob(
            work_hours=data["work_hours"],
            checkpoint_hours=data["checkpoint_minutes"] / 60,
            interval_hours=data["interval_minutes"] / 60,
            restart_hours=data["restart_minutes"] / 60,
            notice_hours=data["notice_seconds"] / 3600,
        )

    def price(self) -> Money:
        """On demand, for an hour."""
        return Money(self.cleaned_data["on_demand"], self.cleaned_data["currency"])
