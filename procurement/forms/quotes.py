"""A quote as the vendor wrote it."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.errors import InputError
from core.models import CURRENCY_CHOICES
from core.templatetags.ui import said
from procurement.forms.fields import TermsField, day, text
from procurement.models import Quote, Rfq, Vendor, WarrantyTerms
from procurement.models.quotes import TAX_MODE_CHOICES, LineKind
from procurement.promises import read_promises
from procurement.services.quotes import WARRANTY_FIELDS, expired


class MultipleFileInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class MultipleFileField(forms.FileField):
    """Several files in one field; cleaned to a list."""

    widget = MultipleFileInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        files = data if isinstance(data, list | tuple) else [data] if data else []
        return [super(MultipleFileField, self).clean(one, initial) for one in files]


class QuoteForm(forms.Form):
    """The head of a quote."""

    vendor = forms.ModelChoiceField(queryset=Vendor.objects.none(), label=_("Vendor"))
    reference = forms.CharField(label=_("Vendor's reference"), max_length=80, required=False)
    currency = forms.ChoiceField(label=_("Currency"), choices=CURRENCY_CHOICES)
    tax_mode = forms.ChoiceField(label=_("Tax is computed"), choices=TAX_MODE_CHOICES)
    valid_until = day(_("Valid until (last day)"))
    lead_time_days = forms.IntegerField(label=_("Lead time (days)"), min_value=0, max_value=3650)
    partial_delivery = forms.NullBooleanField(label=_("May come in parts"), required=False)
    incoterm = forms.CharField(label=_("Delivery term (Incoterm)"), max_length=40, required=False)
    payment_terms = forms.CharField(label=_("Payment terms"), max_length=200, required=False)
    payments = TermsField()
    notes = text(_("Notes"), required=False, rows=2)
    papers = MultipleFileField(
        label=_("The vendor's own file"), required=False,
        help_text=_("PDF, picture, spreadsheet or text. Kept with its hash."),
    )  # fmt: skip

    def __init__(self, *args: Any, rfq: Rfq, **options: Any) -> None:
        super().__init__(*args, **options)
        vendors = [i.vendor_id for i in rfq.invitations.all()]
        self.fields["vendor"].queryset = Vendor.objects.filter(pk__in=vendors)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        vendor, last = data.get("vendor"), data.get("valid_until")
        if vendor is not None and last is not None:
            quote = Quote(vendor=vendor, valid_until=last)
            if quote.is_expired:
                self.add_error("valid_until", said(expired(quote)))
        return data

    def service_arguments(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        data["vendor_id"] = data.pop("vendor").pk
        data["files"] = data.pop("papers")
        return data


class QuoteTableForm(forms.Form):
    """A corrected table."""

    file = forms.FileField(
        label=_("Corrected table"), help_text=_("CSV or XLSX, at most 10,000 lines.")
    )


class QuoteImportForm(QuoteForm):
    """A table with the lines; its head may stand in it, in the form, or some in each."""

    field_order = ("vendor", "file")
    file = forms.FileField(
        label=_("Table"), help_text=_("CSV or XLSX, at most 10,000 lines. Nothing is recorded yet.")
    )
    papers = None  # type: ignore[assignment]

    def __init__(self, *args: Any, rfq: Rfq, **options: Any) -> None:
        super().__init__(*args, rfq=rfq, **options)
        for name in ("currency", "valid_until", "lead_time_days", "tax_mode"):
            self.fields[name].required = False
        self.fields["currency"].choices = [("", "–"), *CURRENCY_CHOICES]  # type: ignore[attr-defined]

    def service_arguments(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        return {"vendor_id": data.pop("vendor").pk, "upload": data.pop("file"), "head": data}


BREAK = re.compile(r"^\s*(\d+)\s*(?:-|–|to|至)\s*(\d*)\s*[:：]\s*(\S+)\s*$")


class QuoteLineForm(forms.Form):
    """One line. A form left empty is no line."""

    NEEDED = ("kind", "description", "quantity", "tax_percent", "serialised")

    rfq_line = forms.TypedChoiceField(
        label=_("Answers line"), coerce=int, empty_value=None, required=False
    )
    kind = forms.ChoiceField(
        label=_("Kind"), choices=[("", "–"), *LineKind.choices], required=False
    )
    description = forms.CharField(label=_("Description"), max_length=300, required=False)
    manufacturer = forms.CharField(label=_("Manufacturer"), max_length=80, required=False)
    part_number = forms.CharField(label=_("Part number"), max_length=80, required=False)
    quantity = forms.DecimalField(
        label=_("Quantity"), max_digits=14, decimal_places=3, required=False
    )
    unit = forms.CharField(label=_("Unit"), max_length=20, required=False, initial="pcs")
    unit_price = forms.DecimalField(
        label=_("Unit price"), max_digits=20, decimal_places=6, required=False
    )
    breaks = forms.CharField(
        label=_("Price breaks"), required=False,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "1-9: 26000\n10-: 25000"}),
        help_text=_("One a line, quantity range and unit price; the last range stays open."),
    )  # fmt: skip
    list_price = forms.DecimalField(
        label=_("List price"), max_digits=20, decimal_places=6, min_value=0, required=False
    )
    discount_percent = forms.DecimalField(
        label=_("Discount (%)"), min_value=0, max_value=100, decimal_places=3, required=False,
        help_text=_("Off the list price. The unit price may then stay empty."),
    )  # fmt: skip
    bundle = forms.CharField(
        label=_("Bundle"), max_length=80, required=False,
        help_text=_("The same name for lines that are sold together only."),
    )  # fmt: skip
    alternative_to = forms.IntegerField(
        label=_("Instead of line"), min_value=1, max_value=200, required=False,
        help_text=_("Number of the line that this one could replace. It is not part of the total."),
    )  # fmt: skip
    tax_percent = forms.DecimalField(
        label=_("Tax rate (%)"), min_value=0, max_value=100, decimal_places=3, required=False
    )
    accelerators_per_item = forms.IntegerField(
        label=_("Accelerators in one item"), min_value=0, required=False
    )
    serialised = forms.NullBooleanField(label=_("Has serial numbers"), required=False)
    promised = forms.CharField(
        label=_("Promised throughput"), required=False,
        widget=forms.Textarea(
            attrs={"rows": 2, "placeholder": "HPL: 330000 Gflop/s per server\ngpu-burn: 45000 Gflop/s per card"}
        ),
        help_text=_(
            "One a line: benchmark, value and unit per card or per server. Acceptance holds the vendor to it within "
            "3 %; “, tolerance 5 %” and “, for information” say otherwise."
        ),
    )  # fmt: skip

    def __init__(self, *args: Any, rfq: Rfq, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["rfq_line"].choices = [  # type: ignore[attr-defined]
            ("", gettext("none")),
            *((line.position, str(line)) for line in rfq.lines.all()),
        ]
        for name in self.NEEDED:
            self.fields[name].needed_when = gettext("needed in a line")  # type: ignore[attr-defined]
        self.fields["unit_price"].needed_when = gettext(  # type: ignore[attr-defined]
            "needed without price breaks or list price"
        )

    def clean_breaks(self) -> list[dict[str, Any]]:
        steps = []
        for number, row in enumerate(self.cleaned_data["breaks"].splitlines(), 1):
            if not row.strip():
                continue
            found = BREAK.match(row)
            if not found:
                raise ValidationError(
                    gettext("Line %(line)s is not “from-to: unit price”.") % {"line": number}
                )
            try:
                price = Decimal(found[3])
            except InvalidOperation as error:
                raise ValidationError(
                    gettext("%(value)s is not a price.") % {"value": found[3]}
                ) from error
            steps.append(
                {
                    "from_quantity": int(found[1]),
                    "to_quantity": int(found[2]) if found[2] else None,
                    "unit_price": price,
                }
            )
        return steps

    def clean_promised(self) -> list[dict[str, Any]]:
        try:
            return read_promises(self.cleaned_data["promised"])
        except InputError as error:
            raise ValidationError(error.message.render(gettext)) from error

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.is_blank():
            return data
        for name in ("kind", "description", "quantity"):
            if not data.get(name) and name not in self.errors:
                self.add_error(name, gettext("This line needs it."))
        for name in ("tax_percent", "serialised"):
            if data.get(name) is None and name not in self.errors:
                self.add_error(name, gettext("This line needs it: what is missing is not guessed."))
        if (
            data.get("unit_price") is None
            and data.get("list_price") is None
            and not data.get("breaks")
        ):
            self.add_error(
                "unit_price", gettext("A missing price is not 0: give a price or price breaks.")
            )
        return data

    def is_blank(self) -> bool:
        """Nothing was typed into it: a kind that is preset does not make a line."""
        return not any(
            self.cleaned_data.get(name) not in (None, "", [])
            for name in ("description", "quantity", "unit_price", "list_price", "breaks")
        )

    def line(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        percent, discount = data.pop("tax_percent"), data.pop("discount_percent")
        data["tax_rate"] = percent / 100
        data["discount_rate"] = None if discount is None else discount / 100
        data["promises"] = data.pop("promised", [])
        return data


class BaseLineForms(forms.BaseFormSet):  # type: ignore[type-arg]
    def clean(self) -> None:
        """A quote says something: without a line, the first is marked with all that it needs."""
        if self.forms and all(form.is_valid() and form.is_blank() for form in self.forms):
            first = self.forms[0]
            first.add_error(
                "description", gettext("A quote has at least one line: this one is empty.")
            )
            for name in QuoteLineForm.NEEDED:
                if first.cleaned_data.get(name) in (None, "") and name != "description":
                    first.add_error(name, gettext("This line needs it."))
            first.add_error(
                "unit_price", gettext("A missing price is not 0: give a price or price breaks.")
            )


LineForms = forms.formset_factory(QuoteLineForm, formset=BaseLineForms, extra=4, max_num=200)


def lines_of(forms_: Any) -> list[dict[str, Any]]:
    """The lines that were filled in, in order."""
    return [form.line() for form in forms_ if not form.is_blank()]


USUAL_TERMS = (
    "start_trigger", "months", "warrantor", "service_level", "advance_replacement", "replacement_new", "doa_days",
    "doa_from_delivery", "burn_in_permitted", "continuous_use_permitted", "new_parts_only", "exclusions",
)  # fmt: skip


class WarrantyForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every term that decides a claim. What the quote does not say stays empty, and is flagged."""

    class Meta:
        model = WarrantyTerms
        fields = list(WARRANTY_FIELDS)
        widgets = {
            name: forms.Textarea(attrs={"rows": 2})
            for name in (
                "covered_items",
                "exclusions",
                "failure_criteria",
                "performance_promise",
                "cloud_sla",
            )
        }

    @property
    def usual(self) -> list[forms.BoundField]:
        """The terms that most quotes tell and that decide most claims."""
        return [self[name] for name in USUAL_TERMS]

    @property
    def others(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field.name not in USUAL_TERMS]

    @property
    def is_told_more(self) -> bool:
        """Whether one of the others is filled in, or wrong."""
        return self.is_bound and any(
            field.errors or field.value() not in (None, "", "unknown") for field in self.others
        )
