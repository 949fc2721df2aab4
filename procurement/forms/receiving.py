"""Goods on the dock: the vendor's packing list, and what was scanned against it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.errors import DomainError, InputError
from core.imports import read_table
from core.messages import msg
from core.organisation import today
from procurement.forms.fields import day, text
from procurement.forms.orders import LineFields, str_of
from procurement.models import Delivery, PurchaseOrder, Substitution
from procurement.selectors.progress import LineProgress
from procurement.serials import (
    UnitEntry,
    parse_units,
    refuse_duplicate_uuids,
    refuse_duplicates,
    split_list,
)
from procurement.states import SubstitutionStatus

YES_NO = [("", _("not looked at")), ("yes", _("Yes")), ("no", _("No"))]
SERIAL_COLUMNS = ("serial", "serial_number", "serial_no", "sn", "序列号")


def serials_of_table(content: bytes) -> tuple[str, ...]:
    """Serial numbers of a packing list as CSV or XLSX, in its order. Raises InputError or EncodingNeeded."""
    table = read_table(content, columns=SERIAL_COLUMNS)
    name = next((name for name in SERIAL_COLUMNS if name in table.columns), None)
    if name is None:
        raise InputError(
            "packing_list",
            msg("The file has no column named %(names)s", names=", ".join(SERIAL_COLUMNS)),
        )
    return tuple(cell for row in table.rows if (cell := (row.cells.get(name) or "").strip()))


class AnnounceForm(forms.Form):
    """A delivery that the vendor announced."""

    note_number = forms.CharField(label=_("Delivery note"), max_length=80)
    expected_on = day(_("Expected on"), required=False)
    shipped_on = day(_("Shipped on"), required=False)
    serials = text(
        _("Serial numbers of the packing list"), required=False, rows=8,
        help_text=_("Separated by line ends, commas or spaces."),
    )  # fmt: skip
    packing_list = forms.FileField(
        label=_("Or the list as a file"),
        required=False,
        help_text=_("CSV or XLSX with a column “serial”. Added to what is pasted above."),
    )

    def clean_serials(self) -> tuple[str, ...]:
        return split_list(self.cleaned_data["serials"])

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        upload = data.pop("packing_list", None)
        listed: tuple[str, ...] = data.get("serials", ())
        try:
            if upload is not None:
                listed += serials_of_table(upload.read())
            refuse_duplicates(listed, field="serials")
        except DomainError as error:
            self.add_error(
                "serials" if upload is None else "packing_list", error.message.render(gettext)
            )
        data["serials"] = listed
        return data


class ReceiveForm(LineFields):
    """What was counted on the dock. Scanners end each serial number with a line end."""

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
        self.consented: dict[int, list[str]] = {}
        agreed = Substitution.objects.filter(
            order_line__order=order, status=SubstitutionStatus.CONSENTED
        )
        for line, part in agreed.order_by("part_number").values_list("order_line", "part_number"):
            self.consented.setdefault(line, []).append(part)
        self.add_lines(order)

    def fields_for(self, row: LineProgress) -> dict[str, forms.Field]:
        fields: dict[str, forms.Field] = {
            "quantity": forms.DecimalField(
                label=_("Items that came"), min_value=0, max_digits=14, decimal_places=3,
                required=False, initial=f"{row.open.normalize():f}",
                widget=forms.NumberInput(attrs={"inputmode": "decimal"}),
            ),
        }  # fmt: skip
        others = ", ".join(self.consented.get(row.line.pk, ()))
        if row.line.part_number or others:
            help_text = (
                gettext("Ordered: %(part)s. Another one needs consent.")
                % {"part": row.line.part_number}
                if row.line.part_number
                else gettext(
                    "The order names no part number: leave it empty if the goods are as ordered."
                )
            )
            if others:
                help_text += " " + gettext("With consent: %(parts)s.") % {"parts": others}
            fields["part_number"] = forms.CharField(
                label=_("Part number on the box"),
                max_length=80,
                required=False,
                help_text=help_text,
            )
        if row.line.serialised:
            fields["units"] = forms.CharField(
                label=_("Serial numbers"), required=False, strip=False,
                widget=forms.Textarea(
                    attrs={
                        "rows": 10, "spellcheck": "false", "autocomplete": "off",
                        "autocapitalize": "characters", "class": "mono",
                    }
                ),
                help_text=_("One unit a line: serial number, then optionally UUID, server serial number, slot."),
            )  # fmt: skip
            fields["missing_units"] = forms.IntegerField(
                label=_("Units without a serial number"), min_value=0, required=False,
                widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
            )  # fmt: skip
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
                    refuse_duplicates([unit.serial for unit in data[name]])
                    refuse_duplicate_uuids(data[name])
                except InputError as error:
                    self.add_error(name, str_of(error))
        return data

    def scanned(self) -> dict[int, tuple[UnitEntry, ...]]:
        """What is in the serial fields so far, by position of the line; a line that cannot be read is skipped."""
        found: dict[int, tuple[UnitEntry, ...]] = {}
        for row in self.progress:
            if row.line.serialised:
                units: list[UnitEntry] = []
                for text_line in str(self.data.get(f"units_{row.line.position}", "")).splitlines():
                    try:
                        units += parse_units(text_line)
                    except InputError:
                        continue
                found[row.line.position] = tuple(units)
        return found

    def refuse_input(self, error: InputError) -> None:
        """At the only line with serial numbers when there is one, else as the base does."""
        fields = [name for name in self.fields if name.startswith(f"{error.field}_")]
        if len(fields) == 1:
            self.add_error(fields[0], str_of(error))
        else:
            super().refuse_input(error)

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
                for line in self.per_line(
                    "quantity", "units", "missing_units", "missing_reason", "part_number"
                )
                if line["quantity"]
            ],
        }


def _tri(value: str) -> bool | None:
    return {"yes": True, "no": False}.get(value)
