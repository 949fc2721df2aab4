"""What is asked of vendors, and the award."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.models import User
from core.organisation import organisation, today
from planning.models import CapacityRequest, Site
from procurement.forms.fields import LocalDateTimeInput, day, text
from procurement.models import PurchasingPolicy, Quote, Rfq, Vendor
from procurement.models.policy import Sealing
from procurement.models.rfqs import TRIGGER_CHOICES, CriterionKind
from procurement.selectors.clauses import current_clauses
from procurement.services.order_sites import planned_site
from procurement.services.rfqs import DEFAULT_WEIGHTS
from procurement.sourceable import sourceable
from procurement.states import VendorStatus


class RequestChoice(forms.ModelMultipleChoiceField):
    """A request with its plan."""

    def label_from_instance(self, obj: Any) -> str:
        plan = getattr(obj.current, "plan", None)
        return f"{obj} · {obj.team} · {plan or '–'}"


class RfqForm(forms.Form):
    """A new RFQ, or a draft to be changed. `service_arguments` fit create_rfq and update_rfq."""

    title = forms.CharField(label=_("Title"), max_length=160)
    requests = RequestChoice(
        CapacityRequest.objects.none(),
        label=_("Requests to buy for"),
        widget=forms.CheckboxSelectMultiple(),
    )
    vendors = forms.ModelMultipleChoiceField(
        Vendor.objects.none(),
        label=_("Vendors to invite"),
        widget=forms.CheckboxSelectMultiple(),
    )
    deadline = forms.DateTimeField(
        label=_("Deadline for quotes"),
        widget=LocalDateTimeInput(),
        input_formats=["%Y-%m-%dT%H:%M"],
    )
    deadline_zone = forms.ChoiceField(label=_("Time zone of the deadline"))
    sealed = forms.BooleanField(
        label=_("Sealed until opened"),
        required=False,
        help_text=_("Nobody can read prices before the bids are opened after the deadline."),
    )
    deliver_by = day(_("Deliver by"), required=False)
    warranty_months = forms.IntegerField(
        label=_("Warranty asked for (months)"), min_value=1, max_value=120, initial=36
    )
    warranty_start = forms.ChoiceField(
        label=_("Warranty asked to start with"), choices=TRIGGER_CHOICES, initial="acceptance"
    )
    clauses = forms.MultipleChoiceField(
        label=_("Clauses"), required=False, widget=forms.CheckboxSelectMultiple(),
        help_text=_("From the clause library. Copied into the RFQ when it is published, then into the order."),
    )  # fmt: skip
    terms = text(
        _("Terms of acceptance"),
        required=False,
        rows=4,
        help_text=_("What no clause says already."),
    )

    def __init__(
        self,
        data: Any = None,
        *,
        user: User,
        rfq: Rfq | None = None,
        asked: Sequence[int] = (),
        **options: Any,
    ) -> None:
        super().__init__(data, **options)
        self.rfq = rfq
        zone = rfq.deadline_zone if rfq else organisation().time_zone
        fields: dict[str, Any] = self.fields
        fields["deadline_zone"].choices = [(name, name) for name in sorted(available_timezones())]
        fields["vendors"].queryset = Vendor.objects.visible_to(user).filter(
            status=VendorStatus.ACTIVE
        )
        library = current_clauses()
        fields["clauses"].choices = [(code, clause.title) for code, clause in library.items()]
        weights = dict(DEFAULT_WEIGHTS)
        if rfq is None:
            found = list(sourceable(user))
            fields["requests"].queryset = sourceable(user)
            chosen = [row for row in found if row.pk in asked] or (found if len(found) == 1 else [])
            self.initial.setdefault(
                "clauses", [code for code, one in library.items() if one.preset]
            )
            self.initial.setdefault("requests", [row.pk for row in chosen])
            days = [row.current.need_by for row in chosen if row.current.need_by]
            if days and min(days) >= today():
                self.initial.setdefault("deliver_by", min(days))
            ahead = timezone.now().astimezone(ZoneInfo(zone)) + timedelta(days=14)
            self.initial.setdefault("deadline", ahead.replace(hour=17, minute=0, tzinfo=None))
        else:
            del self.fields["requests"], self.fields["sealed"], self.fields["deadline_zone"]
            weights = {c.kind: c.weight for c in rfq.criteria.all()}
            chosen_codes = [row.clause.code for row in rfq.clauses.select_related("clause")]
            self.initial = {
                **self.initial,
                "title": rfq.title,
                "vendors": [i.vendor_id for i in rfq.invitations.all()],
                "deadline": rfq.local_deadline.replace(tzinfo=None),
                "deliver_by": rfq.deliver_by,
                "warranty_months": rfq.warranty_months,
                "warranty_start": rfq.warranty_start,
                "terms": rfq.terms,
                "clauses": chosen_codes,
            }
        self.initial.setdefault("deadline_zone", zone)
        policy = PurchasingPolicy.current()
        if "sealed" in self.fields and policy.sealing != Sealing.CHOICE:
            self.initial["sealed"] = policy.sealing == Sealing.ALWAYS
            self.fields["sealed"].disabled = True
        for kind, label in CriterionKind.choices:
            self.fields[f"weight_{kind}"] = forms.IntegerField(
                label=label, min_value=0, max_value=100, initial=weights.get(kind, 0)
            )

    def weight_fields(self) -> list[forms.BoundField]:
        return [self[f"weight_{kind}"] for kind in CriterionKind.values]

    def clean_deadline(self) -> datetime:
        """The wall-clock time as typed, in the zone of the deadline (known only together with it)."""
        value: datetime = self.cleaned_data["deadline"]
        return value.replace(tzinfo=None)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        weights = [data.get(f"weight_{kind}") for kind in CriterionKind.values]
        if None not in weights and sum(w or 0 for w in weights) != 100:
            raise ValidationError(
                gettext("The weights add up to %(value)s; they must add up to 100")
                % {"value": sum(w or 0 for w in weights)}
            )
        return data

    def service_arguments(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        zone = data.pop("deadline_zone", None) or (self.rfq.deadline_zone if self.rfq else "")
        values: dict[str, Any] = {
            "weights": {kind: data.pop(f"weight_{kind}") for kind in CriterionKind.values},
            "vendor_ids": [vendor.pk for vendor in data.pop("vendors")],
            "deadline": data.pop("deadline").replace(tzinfo=ZoneInfo(zone)),
        }
        if self.rfq is None:
            values["request_ids"] = [row.pk for row in data.pop("requests")]
            values["deadline_zone"] = zone
        return values | data


NONE = "none"


def _reason_help() -> str:
    least = PurchasingPolicy.current().reason_length
    text: str = gettext(
        "At least %(n)s characters. It is kept with the award and read by the auditor."
    ) % {"n": least}
    return text


def site_field() -> forms.ChoiceField:
    return forms.ChoiceField(
        label=_("Delivered to"), required=False,
        help_text=_("The site where it will stand: it goes onto the orders and, at receipt, onto the units."),
    )  # fmt: skip


def _offer_sites(form: forms.Form, rfq: Rfq) -> None:
    """Sites to choose from, first the one that the plans name; no field where there is no site."""
    names = list(Site.objects.in_use().order_by("name").values_list("name", flat=True))
    if not names:
        del form.fields["site"]
        return
    chosen = cast("forms.ChoiceField", form.fields["site"])
    chosen.choices = [
        ("", gettext("as the plans say, else on the order")),
        *((one, one) for one in names),
    ]
    planned = planned_site(rfq.lines.select_related("request"))
    if planned is not None:
        form.initial = {"site": planned.name, **form.initial}


class AwardForm(forms.Form):
    """One quote, whole, or none, with the reason."""

    quote = forms.ChoiceField(label=_("Quote"), widget=forms.RadioSelect())
    site = site_field()
    reason = text(_("Reason"), rows=4)

    def __init__(self, data: Any = None, *, rows: Any, rfq: Rfq, **options: Any) -> None:
        super().__init__(data, **options)
        _offer_sites(self, rfq)
        self.fields["quote"].choices = [  # type: ignore[attr-defined]
            *((str(row.quote.pk), f"{row.quote.vendor.name} · {row.totals.gross}") for row in rows),
            (NONE, gettext("No vendor: close the RFQ without an award")),
        ]
        self.fields["reason"].help_text = _reason_help()

    def service_arguments(self) -> dict[str, Any]:
        chosen = self.cleaned_data["quote"]
        found = {"to_none": True} if chosen == NONE else {"quote_id": int(chosen)}
        return {
            **found,
            "reason": self.cleaned_data["reason"],
            "site": self.cleaned_data.get("site", ""),
        }


class SplitForm(forms.Form):
    """Quantities of the lines of several quotes, with the reason."""

    site = site_field()
    reason = text(_("Reason"), rows=4)

    def __init__(
        self, data: Any = None, *, quotes: Sequence[Quote], rfq: Rfq, **options: Any
    ) -> None:
        super().__init__(data, **options)
        _offer_sites(self, rfq)
        self.quotes = quotes
        self.fields["reason"].help_text = _reason_help()
        for quote in quotes:
            for line in quote.lines.all():
                self.fields[f"line_{line.pk}"] = forms.DecimalField(
                    label=_("Quantity"), min_value=0, max_value=line.quantity, max_digits=14,
                    decimal_places=0 if line.serialised else 3, required=False,
                )  # fmt: skip

    def groups(self) -> list[tuple[Quote, list[tuple[Any, forms.BoundField]]]]:
        """The fields by quote, each beside its line."""
        return [
            (quote, [(line, self[f"line_{line.pk}"]) for line in quote.lines.all()])
            for quote in self.quotes
        ]

    def service_arguments(self) -> dict[str, Any]:
        given = [
            (line.pk, self.cleaned_data[f"line_{line.pk}"])
            for quote in self.quotes
            for line in quote.lines.all()
        ]
        return {
            "reason": self.cleaned_data["reason"],
            "site": self.cleaned_data.get("site", ""),
            "lines": [(pk, quantity) for pk, quantity in given if quantity],
        }
