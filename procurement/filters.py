"""Filters of lists, the same for page and API; the address is the saved filter."""

from __future__ import annotations

from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.organisation import today
from procurement.models import Asset, Delivery, Invoice, Rma
from procurement.models.assets import AssetKind
from procurement.selectors.cover import Cover, cover_filter
from procurement.serials import fold
from procurement.states import (
    GONE_ASSET,
    OPEN_RMA,
    AssetStatus,
    DeliveryStatus,
    InvoiceStatus,
    RmaStatus,
)


def _search(label: Any) -> django_filters.CharFilter:
    return django_filters.CharFilter(
        method="search", label=label, widget=forms.TextInput(attrs={"type": "search"})
    )


class DeliveryFilter(django_filters.FilterSet):
    """By delivery note, order or vendor, and by state."""

    q = _search(_("Note, order or vendor"))
    status = django_filters.ChoiceFilter(
        choices=DeliveryStatus.choices, label=_("State"), empty_label=_("All")
    )

    class Meta:
        model = Delivery
        fields = ["q", "status"]

    def search(self, rows: QuerySet[Delivery], name: str, value: str) -> QuerySet[Delivery]:
        return rows.filter(
            Q(folded_note__contains=fold(value))
            | Q(order__number__icontains=value.strip())
            | Q(vendor__name__icontains=value.strip())
        )


class AssetFilter(django_filters.FilterSet):
    """By serial number, UUID or model; state, kind, place and warranty. Expects rows of `with_cover`."""

    q = _search(_("Serial number, UUID or model"))
    status = django_filters.ChoiceFilter(
        method="in_state",
        choices=[("present", _("All that are here")), *AssetStatus.choices],
        label=_("State"),
        empty_label=_("All"),
    )
    kind = django_filters.ChoiceFilter(
        choices=AssetKind.choices, label=_("Kind"), empty_label=_("All")
    )
    site = django_filters.CharFilter(lookup_expr="icontains", label=_("Site"))
    cover = django_filters.ChoiceFilter(
        method="in_cover", choices=Cover.choices, label=_("Warranty"), empty_label=_("All")
    )
    order = django_filters.NumberFilter(
        field_name="receipt_line__order_line__order", label=_("Order"), widget=forms.HiddenInput(),
        min_value=1, max_value=2**63 - 1,
    )  # fmt: skip

    class Meta:
        model = Asset
        fields = ["q", "status", "kind", "site", "cover", "order"]

    def search(self, rows: QuerySet[Asset], name: str, value: str) -> QuerySet[Asset]:
        return rows.filter(
            Q(folded_serial__contains=fold(value))
            | Q(uuid__contains=fold(value))
            | Q(model__icontains=value.strip())
        )

    def in_state(self, rows: QuerySet[Asset], name: str, value: str) -> QuerySet[Asset]:
        if value == "present":
            return rows.exclude(status__in=GONE_ASSET)
        return rows.filter(status=value)

    def in_cover(self, rows: QuerySet[Asset], name: str, value: str) -> QuerySet[Asset]:
        return cover_filter(rows, value, today())


class RmaFilter(django_filters.FilterSet):
    """By number, serial number or vendor, and by state."""

    q = _search(_("Number, serial number or vendor"))
    status = django_filters.ChoiceFilter(
        method="in_state",
        choices=[("open", _("All that are open")), *RmaStatus.choices],
        label=_("State"),
        empty_label=_("All"),
    )

    class Meta:
        model = Rma
        fields = ["q", "status"]

    def search(self, rows: QuerySet[Rma], name: str, value: str) -> QuerySet[Rma]:
        return rows.filter(
            Q(number__icontains=value.strip())
            | Q(vendor_number__icontains=value.strip())
            | Q(asset__folded_serial__contains=fold(value))
            | Q(vendor__name__icontains=value.strip())
        )

    def in_state(self, rows: QuerySet[Rma], name: str, value: str) -> QuerySet[Rma]:
        return rows.filter(status__in=OPEN_RMA if value == "open" else [value])


class InvoiceFilter(django_filters.FilterSet):
    """By number, order or vendor, and by state."""

    q = _search(pgettext_lazy("invoice", "Number, order or vendor"))
    status = django_filters.ChoiceFilter(
        choices=InvoiceStatus.choices, label=_("State"), empty_label=_("All")
    )

    class Meta:
        model = Invoice
        fields = ["q", "status"]

    def search(self, rows: QuerySet[Invoice], name: str, value: str) -> QuerySet[Invoice]:
        return rows.filter(
            Q(folded_number__contains=fold(value))
            | Q(order__number__icontains=value.strip())
            | Q(vendor__name__icontains=value.strip())
        )
