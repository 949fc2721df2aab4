"""Small forms that several steps share."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.errors import InputError
from core.forms import DateInput
from procurement.milestones import check_terms, read_terms
from procurement.models.burn_in import Weight
from procurement.models.negotiation import MOST_ROUNDS, Subject
from procurement.models.orders import PRECEDENCE_CHOICES
from procurement.models.performance import benchmark_choices
from procurement.models.rmas import Outcome


def text(label: Any, *, required: bool = True, rows: int = 3, **options: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=required,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": rows}),
        **options,
    )


def day(label: Any, *, required: bool = True, **options: Any) -> forms.DateField:
    return forms.DateField(label=label, required=required, widget=DateInput(), **options)


class LocalDateTimeInput(forms.DateTimeInput):
    """The browser's own picker of a day and a time."""

    input_type = "datetime-local"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M", **kwargs)


class TermsField(forms.CharField):
    """Payment terms, one a line: “30 order”; cleaned to mappings for the service."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            label=_("Parts of the payment"), required=False, max_length=4000,
            widget=forms.Textarea(
                attrs={"rows": 4, "placeholder": "30 order\n60 delivery\n10 acceptance"}
            ),
            help_text=_(
                "One a line: per cent, what opens it (order, delivery, acceptance or retention), and days after it "
                "if any. They add up to 100. Left empty, accepted quantities are paid by invoice."
            ),
            **options,
        )  # fmt: skip

    def clean(self, value: Any) -> list[dict[str, Any]]:
        try:
            rows = read_terms(super().clean(value))
            check_terms(rows)
        except InputError as error:
            raise ValidationError(error.message.render(gettext), code=error.code) from error
        return rows


class ReasonForm(forms.Form):
    reason = text(_("Reason"))


class OptionalReasonForm(forms.Form):
    reason = text(_("Reason"), required=False)


class OverForm(forms.Form):
    over_reason = text(
        _("Why more than was approved is right"),
        required=False,
        help_text=_("Needed where it is above what was approved by more than the tolerance."),
    )


class HigherForm(forms.Form):
    over_reason = text(_("Why more than was approved is right"))


class PaymentForm(forms.Form):
    """A payment as the bank made it."""

    paid_on = day(_("Paid on"))
    amount = forms.DecimalField(label=_("Amount paid"), max_digits=18, decimal_places=3)
    rate = forms.DecimalField(
        label=_("Rate that the bank took"), max_digits=18, decimal_places=8, required=False
    )
    reference = forms.CharField(label=_("Bank reference"), max_length=80, required=False)
    settles = forms.BooleanField(
        label=_("The rest will not be paid"), required=False,
        help_text=_("A discount or a penalty: the invoice counts as paid with this."),
    )  # fmt: skip


class NoteForm(forms.Form):
    note = text(_("Note"))


class ContactForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=120)
    role = forms.CharField(label=_("Function"), max_length=80, required=False)
    email = forms.EmailField(label=_("E-mail"), required=False)
    phone = forms.CharField(label=_("Phone"), max_length=40, required=False)


class ConflictForm(forms.Form):
    has_conflict = forms.BooleanField(
        label=_("I have an interest in one of the vendors"), required=False,
        help_text=_("Left open, you state that you have none: no share, post, gift or family tie."),
    )  # fmt: skip
    vendor_id = forms.IntegerField(
        label=_("With which vendor"), required=False,
        help_text=_("Named, it holds on other RFQs too in which this vendor quotes."),
    )  # fmt: skip
    text = text(_("What it is"), required=False, rows=2)


class ConcessionForm(forms.Form):
    """What a vendor gave way on; which vendors there are is known with the RFQ."""

    vendor_id = forms.IntegerField(label=_("Vendor"))
    round = forms.IntegerField(label=_("Round"), min_value=1, max_value=MOST_ROUNDS)
    subject = forms.ChoiceField(label=_("Subject"), choices=Subject.choices)
    from_value = forms.CharField(label=_("From"), max_length=200)
    to_value = forms.CharField(label=_("To"), max_length=200)
    amount = forms.DecimalField(
        label=_("Worth, in the quote's currency"), required=False, max_digits=18, decimal_places=3,
        help_text=_("Left empty when it is not known."),
    )  # fmt: skip
    conceded_by = forms.CharField(label=_("Who gave way"), max_length=120)
    agreed_on = day(_("Agreed on"))


class MeasurementForm(forms.Form):
    """A figure read from a file; which files there are is known with the delivery."""

    evidence_id = forms.IntegerField(label=_("File"))
    serial = forms.CharField(label=_("Serial number of the card or server"), max_length=64)
    benchmark = forms.ChoiceField(label=_("Benchmark"), choices=benchmark_choices)
    name = forms.CharField(
        label=_("As the vendor calls it"), max_length=120, required=False,
        help_text=_("For another benchmark: the same words as in the promise."),
    )  # fmt: skip
    value = forms.DecimalField(label=_("Measured"), max_digits=19, decimal_places=6)
    unit = forms.CharField(
        label=_("Unit"), max_length=24, required=False,
        help_text=_("Left empty: the usual one of the benchmark, such as Gflop/s or GB/s."),
    )  # fmt: skip
    note = forms.CharField(label=_("Note"), max_length=300, required=False)


class ChecklistItemForm(forms.Form):
    """One item of a contract's checklist; which kinds of units there are is known with the order."""

    field_order = ("kind", "code", "weight", "text", "criterion", "evidence", "reason")
    reason = text(_("Reason"))  # before `text`, which is a field here
    kind = forms.CharField(label=_("For"), max_length=12)
    code = forms.CharField(
        label=_("Item"),
        max_length=12,
        help_text=_("As A4.10. A code that is not there adds an item."),
    )
    weight = forms.ChoiceField(
        label=_("Weight"), choices=[*Weight.choices, ("left_out", _("Left out of this contract"))]
    )
    text = forms.CharField(
        label=_("Words"), max_length=200, required=False, help_text=_("Left empty: as it is.")
    )
    criterion = forms.CharField(label=_("Measurable criterion"), max_length=300, required=False)
    evidence = forms.CharField(label=_("Evidence"), max_length=120, required=False)


class SubstitutionForm(forms.Form):
    position = forms.IntegerField(label=_("Line"), min_value=1)
    part_number = forms.CharField(label=_("Part number"), max_length=80)
    description = forms.CharField(label=_("Description"), max_length=300)
    reason = text(_("Why the vendor asks for it"))


class DrawDownForm(forms.Form):
    position = forms.IntegerField(label=_("Line"), min_value=1)
    month = day(_("Month (any day of it)"))
    quantity = forms.DecimalField(
        label=_("Used in the month"), min_value=0, max_digits=14, decimal_places=3
    )
    reason = text(
        _("Reason"), required=False, rows=2, help_text=_("Needed to change a month that is noted.")
    )


class DeadlineForm(forms.Form):
    deadline = forms.DateTimeField(
        label=_("New deadline (your time zone)"),
        widget=LocalDateTimeInput(),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M%z", "%Y-%m-%dT%H:%M:%S%z"],
    )
    reason = text(_("Reason"))


class ValidityForm(forms.Form):
    valid_until = day(_("Valid until (last day)"))


class PromiseForm(forms.Form):
    promised_on = day(_("Promised on"))


class SiteForm(forms.Form):
    site = forms.CharField(label=_("Site"), max_length=80)


class PrecedenceForm(forms.Form):
    precedence = forms.ChoiceField(label=_("Where they differ"), choices=PRECEDENCE_CHOICES)
    reason = text(_("Reason"))


class RegistrationForm(forms.Form):
    registered_on = day(_("Registered on"))
    registration = forms.CharField(label=_("Registered under"), max_length=80, required=False)
    serials = text(
        _("Serial numbers"),
        required=False,
        help_text=_("Left empty: every unit that waits for it."),
    )


class PlaceForm(forms.Form):
    site = forms.CharField(label=_("Site"), max_length=80)
    rack = forms.CharField(label=_("Rack"), max_length=40, required=False)


class InstallForm(forms.Form):
    site = forms.CharField(label=_("Site"), max_length=80)
    rack = forms.CharField(label=_("Rack"), max_length=40, required=False)
    rack_unit = forms.CharField(label=_("Rack unit"), max_length=20, required=False)


class FaultForm(forms.Form):
    fault = text(_("What was seen"))
    fault_on = day(_("Day of the fault"), required=False)


class ItemForm(forms.Form):
    code = forms.CharField(label=_("Item"), max_length=12)
    result = forms.ChoiceField(
        label=_("Result"),
        choices=[("pass", _("Pass")), ("fail", _("Fail")), ("na", _("Not applicable"))],
    )
    value = forms.CharField(label=_("Measured"), max_length=120, required=False)
    note = text(_("Note"), required=False, rows=2)


class WaiveForm(forms.Form):
    code = forms.CharField(label=_("Item"), max_length=12)
    reason = text(_("Reason"))
    expires_on = day(_("Until"), required=False)


class AuthoriseForm(forms.Form):
    vendor_number = forms.CharField(label=_("Vendor's RMA number"), max_length=60)
    answer = text(_("Vendor's answer"), required=False)


class TrackingForm(forms.Form):
    tracking = forms.CharField(label=_("Tracking number"), max_length=80)


class ReplacementForm(forms.Form):
    serial = forms.CharField(label=_("Serial number"), max_length=64)
    uuid = forms.CharField(label=_("Device UUID"), max_length=80, required=False)
    slot = forms.CharField(label=_("Slot"), max_length=20, required=False)
    received_on = day(_("Received on"), required=False)


class RepairedForm(forms.Form):
    outcome = forms.ChoiceField(
        label=_("What the vendor found"),
        choices=[
            (Outcome.REPAIRED.value, Outcome.REPAIRED.label),
            (Outcome.NO_FAULT.value, Outcome.NO_FAULT.label),
        ],
    )
    note = text(_("Note"))


class ExclusionForm(forms.Form):
    reason = text(
        _("Why the other units are left out"),
        required=False,
        help_text=_("Stands for every unit that did not pass its burn-in."),
    )


class EvidenceForm(forms.Form):
    file = forms.FileField(label=_("File"))
