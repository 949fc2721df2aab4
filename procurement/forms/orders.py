"""What is to change and what was invoiced: one set of fields per order line."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.errors import InputError
from core.organisation import today
from procurement.forms.fields import TermsField, day, text
from procurement.milestones import write_terms
from procurement.models import PurchaseOrder
from procurement.models.quotes import TAX_MODE_CHOICES
from procurement.selectors.milestones import MilestoneState, milestone_states
from procurement.selectors.progress import LineProgress, line_progress


def plain(value: Decimal) -> str:
    """As a person writes it: no exponent, no places that say nothing."""
    return f"{value.normalize():f}"


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


class AmendForm(LineFields):
    """Other quantities or prices, proposed."""

    payments = TermsField()
    reason = text(_("Reason"))

    def __init__(self, data: Any = None, *, order: PurchaseOrder) -> None:
        super().__init__(data)
        written = write_terms(row.term for row in order.milestones.standing())
        self.initial = {**self.initial, "payments": written}
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
            "payments": self.cleaned_data["payments"],
            "changes": {
                line["position"]: {"quantity": line["quantity"], "unit_price": line["unit_price"]}
                for line in self.per_line("quantity", "unit_price")
            },
        }


class InvoiceHead(LineFields):
    """What every invoice prints."""

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

    def service_arguments(self) -> dict[str, Any]:
        names = ("number", "dated_on", "tax_mode", "stated_tax", "stated_gross", "upload")
        return {name: self.cleaned_data[name] for name in names} | {"currency": self.order.currency}


class MilestoneInvoiceForm(InvoiceHead):
    """An invoice against the milestones of its order: how much of which."""

    def add_lines(self, order: PurchaseOrder) -> None:
        self.order = order
        self.states = milestone_states(order)
        for state in self.states:
            self.fields[f"amount_{state.milestone.position}"] = forms.DecimalField(
                label=_("Amount invoiced, with tax"), min_value=0, max_digits=20, decimal_places=3,
                required=False, initial=plain(state.free.amount) if state.free.amount else None,
            )  # fmt: skip

    def rows(self) -> list[Any]:
        return []

    def parts(self) -> list[tuple[MilestoneState, forms.BoundField]]:
        return [(state, self[f"amount_{state.milestone.position}"]) for state in self.states]

    def heads(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if not name.startswith("amount_")]

    def service_arguments(self) -> dict[str, Any]:
        amounts = [
            (state.milestone.position, self.cleaned_data[f"amount_{state.milestone.position}"])
            for state in self.states
        ]
        return super().service_arguments() | {
            "milestones": [
                {"position": position, "amount": amount} for position, amount in amounts if amount
            ]
        }


class InvoiceForm(InvoiceHead):
    """An invoice of accepted quantities."""

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
        return super().service_arguments() | {
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
