"""Forms of burn-in and acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from procurement.forms.fields import text
from procurement.models.burn_in import ItemResult
from procurement.selectors.burn_in import UnitRow
from procurement.states import AssetStatus


class StartForm(forms.Form):
    """Where units that are not installed yet are put when their run starts."""

    site = forms.CharField(label=_("Site"), max_length=80, required=False)
    rack = forms.CharField(label=_("Rack"), max_length=40, required=False)


class FindingForm(forms.Form):
    """The same finding on several items."""

    result = forms.ChoiceField(
        label=_("Result"),
        choices=[
            (choice.value, choice.label)
            for choice in (ItemResult.PASS, ItemResult.FAIL, ItemResult.NOT_APPLICABLE)
        ],
    )
    note = text(
        _("Note"), required=False, rows=2,
        help_text=_("Needed for a failure, for “not applicable”, and for items that are for review."),
    )  # fmt: skip


class ProposeForm(forms.Form):
    """Which units are proposed, and why each of the others is not. Nothing is left out without a word."""

    reason = text(
        _("Why the others are left out"), required=False, rows=2,
        help_text=_("Stands for every unit without a reason of its own."),
    )  # fmt: skip

    def __init__(self, *args: Any, units: Sequence[UnitRow], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.units = units
        for row in units:
            pk = row.asset.pk
            if row.asset.status == AssetStatus.BURNED_IN:
                self.fields[f"in_{pk}"] = forms.BooleanField(
                    required=False, initial=True, label=_("Propose")
                )
            named = {
                "aria-label": gettext("Why %(serial)s is left out") % {"serial": row.asset.serial}
            }
            self.fields[f"reason_{pk}"] = forms.CharField(
                required=False, max_length=300, label=_("Reason"), widget=forms.TextInput(named)
            )

    def rows(self) -> list[tuple[UnitRow, forms.BoundField | None, forms.BoundField]]:
        """(unit, its tick when it passed, its reason) each."""
        return [
            (
                row,
                self[f"in_{row.asset.pk}"] if f"in_{row.asset.pk}" in self.fields else None,
                self[f"reason_{row.asset.pk}"],
            )
            for row in self.units
        ]

    def service_arguments(self) -> dict[str, Any]:
        data = self.cleaned_data
        exclusions = {}
        for row in self.units:
            pk = row.asset.pk
            own = data.get(f"reason_{pk}", "").strip()
            if f"in_{pk}" not in self.fields:
                if own:
                    exclusions[pk] = own
            elif not data[f"in_{pk}"]:
                exclusions[pk] = own or data["reason"]
        return {"exclusions": exclusions, "reason": data["reason"]}
