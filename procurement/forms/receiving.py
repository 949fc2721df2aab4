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
from core.templatetags.ui import said
from procurement.forms.fields import day, text
from procurement.forms.orders import LineFields, str_of
from procurement.models import Delivery, PurchaseOrder, Substitution
from procurement.selectors.progress import LineProgress
from procurement.serials import (
    UnitEntry,
    fold,
    listed_twice,
    parse_units,
    read_units,
    refuse_duplicates,
    split_list,
    uuids_listed_twice,
)
from procurement.services.deliveries import ahead
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
    unannounced = forms.BooleanField(
        label=_("It is this delivery, though none of its serial numbers was announced"),
        required=False,
    )
    asks_unannounced = False

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
        arrived = data.get("arrived_on")
        if arrived is not None and arrived > today():
            self.add_error("arrived_on", said(ahead(arrived)))
        serials: list[str] = []
        for row in self.progress:
            name = f"units_{row.line.position}"
            if not isinstance(data.get(name), str):
                continue
            units, errors = read_units(data[name])
            names = [unit.serial for unit in units]
            serials += names
            for error in [*errors, *listed_twice(names), *uuids_listed_twice(units)]:
                self.add_error(name, str_of(error))
            if name in data:
                data[name] = units
        self._confirm_unannounced(serials, bool(data.get("unannounced")))
        return data

    def _confirm_unannounced(self, serials: list[str], confirmed: bool) -> None:
        """Another delivery may be on the dock, or another list: goods of which none was announced are asked about."""
        if self.delivery is None or not serials or confirmed:
            return
        listed = {row.folded_serial for row in self.delivery.announced.all()}
        if listed and not any(fold(serial) in listed for serial in serials):
            told = msg(
                "None of the %(scanned)s serial numbers that were scanned is among the %(announced)s announced with "
                "%(note)s. If this is the delivery all the same, say so here and post again.",
                scanned=len(serials), announced=len(listed), note=self.delivery.note_number,
            )  # fmt: skip
            self.add_error("unannounced", said(told))
            self.asks_unannounced = True

    def heads(self) -> list[forms.BoundField]:
        """Without the question about serial numbers that were not announced, unless it is asked or answered."""
        asked = self.asks_unannounced or (self.is_bound and bool(self["unannounced"].value()))
        return [bound for bound in super().heads() if asked or bound.name != "unannounced"]

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
