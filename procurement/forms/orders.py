"""What came in, what is to change, what was invoiced: one set of fields per order line."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.errors import InputError
from core.organisation import today
from procurement.forms.fields import day, text
from procurement.models import Delivery, PurchaseOrder
from procurement.models.quotes import TAX_MODE_CHOICES
from procurement.selectors.progress import LineProgress, line_progress
from procurement.serials import parse_units, split_list

YES_NO = [("", _("not looked at")), ("yes", _("Yes")), ("no", _("No"))]


def plain(value: Decimal) -> str:
    """As a person writes it: no exponent, no places that say nothing."""
    return f"{value.normalize():f}"


def _tri(value: str) -> bool | None:
    return {"yes": True, "no": False}.get(value)


class LineFields(forms.Form):
    """Adds fields for each line of an order; `rows` pairs them with the line's progress for the template."""

    order: PurchaseOrder

    def add_lines(self, order: PurchaseOrder) -> None:
        self.order = order
        self.progress = list(line_progress(order).values())
        for row in self.progress:
            for name, field in self.fields_for(row).items():
                self.fields[f"{name}_{row.line.position}"] = field

    def fields_for(self, row: LineProgress) -> dict[str, forms.Field]:
        raise NotImplementedError

    def rows(self) -> list[tuple[LineProgress, list[forms.BoundField]]]:
        return [
            (row, [self[name] for name in self.fields if name.endswith(f"_{row.line.position}")])
            for row in self.progress
        ]

    def heads(self) -> list[forms.BoundField]:
        """Fields that belong to no line."""
        lines = {bound.name for _row, bounds in self.rows() for bound in bounds}
        return [self[name] for name in self.fields if name not in lines]

    def per_line(self, *names: str) -> list[dict[str, Any]]:
        """A mapping per line, with its position."""
        return [
            {"position": row.line.position}
            | {name: self.cleaned_data.get(f"{name}_{row.line.position}") for name in names}
            for row in self.progress
        ]

    def refuse_input(self, error: InputError) -> None:
        """Show what the service refused at the field of its line when the form has it, else at the top."""
        self.add_error(error.field if error.field in self.fields else None, str_of(error))


def str_of(error: InputError) -> ValidationError:
    return ValidationError(error.message.render(gettext), code=error.code)


class AnnounceForm(forms.Form):
    """A delivery that the vendor announced."""

    note_number = forms.CharField(label=_("Delivery note"), max_length=80)
    expected_on = day(_("Expected on"), required=False)
    shipped_on = day(_("Shipped on"), required=False)
    serials = text(
        _("Serial numbers of the packing list"), required=False, rows=8,
        help_text=_("Separated by line ends, commas or spaces."),
    )  # fmt: skip

    def clean_serials(self) -> tuple[str, ...]:
        return split_list(self.cleaned_data["serials"])


class ReceiveForm(LineFields):
    """What was counted on the dock."""

    note_number = forms.CharField(label=_("Delivery note"), max_length=80)
    arrived_on = day(_("Arrived on"))
    shipped_on = day(_("Shipped on"), required=False)
    packaging_intact = forms.ChoiceField(
        label=_("Packaging and seals intact"), choices=YES_NO, required=False
    )
    shock_label_clear = forms.ChoiceField(
        label=_("Shock and tilt labels not triggered"), choices=YES_NO, required=False
    )
    notes = text(_("Condition on arrival"), required=False, rows=2)

    def __init__(
        self, data: Any = None, *, order: PurchaseOrder, delivery: Delivery | None = None
    ) -> None:
        super().__init__(data)
        self.delivery = delivery
        self.initial["arrived_on"] = today()
        if delivery is not None:
            self.initial = {
                **self.initial,
                "note_number": delivery.note_number,
                "shipped_on": delivery.shipped_on,
            }
            self.fields["note_number"].disabled = True
        self.add_lines(order)

    def fields_for(self, row: LineProgress) -> dict[str, forms.Field]:
        fields: dict[str, forms.Field] = {
            "quantity": forms.DecimalField(
                label=_("Items that came"), min_value=0, max_digits=14, decimal_places=3,
                required=False, initial=plain(row.open),
            ),
        }  # fmt: skip
        if row.line.serialised:
            fields["units"] = forms.CharField(
                label=_("Serial numbers"), required=False,
                widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
                help_text=_("One unit a line: serial number, then optionally UUID, server serial number, slot."),
            )  # fmt: skip
            fields["missing_units"] = forms.IntegerField(
                label=_("Units without a serial number"), min_value=0, required=False
            )
            fields["missing_reason"] = forms.CharField(
                label=_("Why"), max_length=200, required=False
            )
        return fields

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        for row in self.progress:
            name = f"units_{row.line.position}"
            if isinstance(data.get(name), str):
                try:
                    data[name] = parse_units(data[name])
                except InputError as error:
                    self.add_error(name, str_of(error))
        return data

    def service_arguments(self) -> dict[str, Any]:
        data = self.cleaned_data
        return {
            "delivery_id": self.delivery.pk if self.delivery else None,
            "note_number": data["note_number"],
            "arrived_on": data["arrived_on"],
            "shipped_on": data["shipped_on"],
            "packaging_intact": _tri(data["packaging_intact"]),
            "shock_label_clear": _tri(data["shock_label_clear"]),
            "notes": data["notes"],
            "lines": [
                line
                | {"units": line["units"] or (), "missing_reason": line["missing_reason"] or ""}
                for line in self.per_line("quantity", "units", "missing_units", "missing_reason")
                if line["quantity"]
            ],
        }


class AmendForm(LineFields):
    """Other quantities or prices, proposed."""

    reason = text(_("Reason"))

    def __init__(self, data: Any = None, *, order: PurchaseOrder) -> None:
        super().__init__(data)
        self.add_lines(order)

    def fields_for(self, row: LineProgress) -> dict[str, forms.Field]:
        return {
            "quantity": forms.DecimalField(
                label=_("Quantity"), min_value=0, max_digits=14, decimal_places=3,
                initial=plain(row.line.quantity),
            ),
            "unit_price": forms.DecimalField(
                label=_("Unit price"), min_value=0, max_digits=20, decimal_places=6,
                initial=plain(row.line.unit_price),
            ),
        }  # fmt: skip

    def service_arguments(self) -> dict[str, Any]:
        return {
            "reason": self.cleaned_data["reason"],
            "changes": {
                line["position"]: {"quantity": line["quantity"], "unit_price": line["unit_price"]}
                for line in self.per_line("quantity", "unit_price")
            },
        }


class InvoiceForm(LineFields):
    """An invoice as printed."""

    number = forms.CharField(label=_("Invoice number"), max_length=80)
    dated_on = day(_("Date of the invoice"))
    tax_mode = forms.ChoiceField(label=_("Tax is computed"), choices=TAX_MODE_CHOICES)
    stated_tax = forms.DecimalField(
        label=_("Tax, as printed"), min_value=0, max_digits=20, decimal_places=3
    )
    stated_gross = forms.DecimalField(
        label=_("Total, as printed"), min_value=0, max_digits=20, decimal_places=3
    )
    upload = forms.FileField(label=_("File"), required=False)

    def __init__(self, data: Any = None, files: Any = None, *, order: PurchaseOrder) -> None:
        super().__init__(data, files)
        self.initial = {**self.initial, "tax_mode": order.tax_mode, "dated_on": today()}
        self.add_lines(order)

    def fields_for(self, row: LineProgress) -> dict[str, forms.Field]:
        return {
            "quantity": forms.DecimalField(
                label=_("Quantity invoiced"), min_value=0, max_digits=14, decimal_places=3,
                required=False, initial=plain(row.payable),
            ),
            "unit_price": forms.DecimalField(
                label=_("Unit price"), min_value=0, max_digits=20, decimal_places=6,
                initial=plain(row.line.unit_price),
            ),
            "tax_percent": forms.DecimalField(
                label=_("Tax rate (%)"), min_value=0, max_value=100, decimal_places=3,
                initial=plain(row.line.tax_rate * 100),
            ),
        }  # fmt: skip

    def service_arguments(self) -> dict[str, Any]:
        data = self.cleaned_data
        return {
            "number": data["number"],
            "dated_on": data["dated_on"],
            "tax_mode": data["tax_mode"],
            "currency": self.order.currency,
            "stated_tax": data["stated_tax"],
            "stated_gross": data["stated_gross"],
            "upload": data["upload"],
            "lines": [
                {
                    "position": line["position"],
                    "quantity": line["quantity"],
                    "unit_price": line["unit_price"],
                    "tax_rate": line["tax_percent"] / 100,
                }
                for line in self.per_line("quantity", "unit_price", "tax_percent")
                if line["quantity"]
            ],
        }
