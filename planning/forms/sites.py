"""A machine room, and what studies take from the organisation, as forms."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from core.models import Stage
from planning.models import Site

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise  # of the stubs alone


class SiteForm(forms.ModelForm):  # type: ignore[type-arg]
    """All of a site; the service checks how the figures go together."""

    class Meta:
        model = Site
        fields = ["name", *Site.FIGURES]
        help_texts: ClassVar[dict[str, Any]] = {
            "country": _("Two letters: CN, SG. Empty: the organisation's own."),
            "power_kw": _("What the room can feed to servers."),
            "cooling_kw": _("Heat that the room can remove."),
            "floor_kg_per_rack": _("Empty: not stated, and weight is not checked."),
            "pue": _("Empty: the usual one of the cost defaults."),
            "charge_per_kw_month": _(
                "Room, upkeep and depreciation. Empty: the usual colocation price."
            ),
            "tariff_per_kwh": _("Empty: the usual tariff of the cost defaults."),
        }

    def validate_constraints(self) -> None:
        """The service says what is wrong, at the field."""

    def validate_unique(self) -> None:
        """The service says so."""


class StageForm(forms.Form):
    """What kind of asker the organisation is."""

    stage = forms.ChoiceField(
        label=_("Stage"),
        choices=[("", _("Not told: no advice by stage")), *Stage.choices],
        required=False,
    )


def _per_cent_field(label: _StrPromise, help_text: _StrPromise) -> forms.DecimalField:
    return forms.DecimalField(
        label=label, help_text=help_text, required=False, min_value=0,
        max_value=Decimal("99.99"), decimal_places=2,
    )  # fmt: skip


class PurchaseTaxForm(forms.Form):
    """The tax on purchases and on rents, in per cent."""

    rate = _per_cent_field(
        _("Tax on purchases, per cent"),
        _("Of the price before tax: 13 for 13 per cent. Empty: the usual one of the country, where known."),
    )  # fmt: skip
    rents = _per_cent_field(
        _("Tax on a cloud's rents, per cent"),
        _(
            "Services are often taxed lower than goods: 6 per cent in China, where leases of equipment bear 13. "
            "Empty: as on purchases; where that is empty too, the usual one of the country."
        ),
    )
    reclaimed = forms.BooleanField(
        label=_("The tax is reclaimed"),
        required=False,
        help_text=_("Then it is part of what is paid at the order, and of no cost."),
    )

    def share(self, name: str) -> Decimal | None:
        """The rate of that name as a share."""
        rate: Decimal | None = self.cleaned_data[name]
        return None if rate is None else rate / 100
