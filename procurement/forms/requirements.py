"""Criteria of an RFQ as rows, and a quote's answers to them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.whole import whole
from procurement.forms.fields import day
from procurement.models import Rfq, RfqRequirement
from procurement.models.requirements import KIND_CHOICES, PER_CHOICES
from procurement.requirements import MOST, RequirementKind


class RequirementForm(forms.Form):
    """One criterion. A row without a figure and without a day is none."""

    kind = forms.ChoiceField(label=_("Kind"), choices=[("", "–"), *KIND_CHOICES], required=False)
    benchmark = forms.CharField(
        label=_("Benchmark"), max_length=160, required=False,
        help_text=_("For throughput and latency: which model, precision and lengths, or a known benchmark."),
    )  # fmt: skip
    value = forms.DecimalField(
        label=_("Figure"), max_digits=18, decimal_places=6, required=False,
        help_text=_("At least this for throughput and memory, at most this for latency and power."),
    )  # fmt: skip
    unit = forms.CharField(
        label=_("Unit"), max_length=24, required=False,
        help_text=_("tokens/s, GB, ms, W, kW and the like."),
    )  # fmt: skip
    per = forms.ChoiceField(label=_("Figure of"), choices=PER_CHOICES, required=False)
    day = day(_("Day (of a delivery)"), required=False)
    lines = forms.CharField(
        label=_("Lines"), max_length=80, required=False,
        help_text=_("Numbers of the lines that it holds for; empty: all."),
    )  # fmt: skip

    def clean_lines(self) -> list[int]:
        found = []
        for part in self.cleaned_data["lines"].replace("，", ",").split(","):
            if part.strip():
                number = whole(part.strip())
                if number is None:
                    raise ValidationError(
                        gettext("%(value)s is not the number of a line.") % {"value": part.strip()}
                    )
                found.append(number)
        return found

    def is_blank(self) -> bool:
        return self.cleaned_data.get("value") is None and self.cleaned_data.get("day") is None

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        named = data.get("kind") or data.get("benchmark") or data.get("unit")
        if named and self.is_blank() and not self.errors:
            delivery = data.get("kind") == RequirementKind.DELIVERY
            self.add_error("day" if delivery else "value", gettext("This criterion needs it."))
        return data

    def row(self) -> dict[str, Any]:
        return dict(self.cleaned_data)


RequirementForms = forms.formset_factory(RequirementForm, extra=2, max_num=MOST, can_delete=True)


def rows_of(forms_: Any) -> list[dict[str, Any]]:
    """The criteria that stay, in order."""
    return [
        form.row() for form in forms_ if not form.is_blank() and not form.cleaned_data.get("DELETE")
    ]


def initial_rows(rfq: Rfq) -> list[dict[str, Any]]:
    """The criteria as the form shows them."""
    return [
        {
            "kind": row.kind,
            "benchmark": row.benchmark,
            "value": None if row.value is None else f"{row.value.normalize():f}",
            "unit": row.unit,
            "per": row.per,
            "day": row.day,
            "lines": ", ".join(str(number) for number in row.lines),
        }
        for row in rfq.requirements.all()
    ]


class AnswersForm(forms.Form):
    """What a quote says of each criterion. What is left open is not said."""

    def __init__(self, *args: Any, rfq: Rfq, **options: Any) -> None:
        super().__init__(*args, **options)
        self.requirements = list(rfq.requirements.all())
        for row in self.requirements:
            number = row.position
            if row.kind == RequirementKind.DELIVERY:
                self.fields[f"day_{number}"] = day(_("Day"), required=False)
            else:
                self.fields[f"value_{number}"] = forms.DecimalField(
                    label=_("Figure (%(unit)s)") % {"unit": row.unit}, max_digits=18,
                    decimal_places=6, required=False,
                )  # fmt: skip
            self.fields[f"meets_{number}"] = forms.NullBooleanField(
                label=_("The vendor says that it is met"), required=False
            )
            self.fields[f"note_{number}"] = forms.CharField(
                label=_("Note"), max_length=300, required=False
            )

    def groups(self) -> list[tuple[RfqRequirement, list[forms.BoundField]]]:
        return [
            (
                row,
                [
                    self[name]
                    for part in ("day", "value", "meets", "note")
                    if (name := f"{part}_{row.position}") in self.fields
                ],
            )
            for row in self.requirements
        ]

    def answers(self) -> list[dict[str, Any]]:
        data = self.cleaned_data
        return [
            {"requirement": row.position}
            | {
                part: data[name]
                for part in ("day", "value", "meets", "note")
                if (name := f"{part}_{row.position}") in data
            }
            for row in self.requirements
        ]
