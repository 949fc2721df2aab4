"""Filters, search and order of the lists: one definition for pages, exports and API."""

from __future__ import annotations

from typing import Any

import django_filters
from django import forms
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from catalog.models import (
    Accelerator,
    CloudOffer,
    LeaseOffer,
    ModelArchitecture,
    OfferPrice,
    PriceRecord,
    ServerPlatform,
    TcoDefault,
)
from core.models import CURRENCY_CHOICES, ExchangeRate


class SortFilter(django_filters.ChoiceFilter):
    """`sort=name` or `sort=-name`. Rows without the figure come last in either direction; ties go by key."""

    def __init__(self, fields: dict[str, tuple[str, Any]], **kwargs: Any) -> None:
        self.fields = fields
        choices = [(name, label) for name, (_path, label) in fields.items()]
        choices += [(f"-{name}", label) for name, (_path, label) in fields.items()]
        kwargs.setdefault("widget", forms.HiddenInput)
        super().__init__(choices=choices, label=_("sort order"), **kwargs)

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        path = F(self.fields[value.removeprefix("-")][0])
        ordered = path.desc(nulls_last=True) if value.startswith("-") else path.asc(nulls_last=True)
        return qs.order_by(ordered, "pk")


LONGEST_SEARCH = 100  # characters: each word is a condition, and a database takes so many


class SearchFilter(django_filters.CharFilter):
    """Every word must occur in one of the fields."""

    def __init__(self, *paths: str, **kwargs: Any) -> None:
        self.paths = paths
        kwargs.setdefault("max_length", LONGEST_SEARCH)
        kwargs.setdefault("widget", forms.TextInput(attrs={"type": "search"}))
        super().__init__(label=_("Search"), **kwargs)

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        for word in (value or "").split():
            match = Q()
            for path in self.paths:
                match |= Q(**{f"{path}__icontains": word})
            qs = qs.filter(match)
        return qs


class OccurringFilter(django_filters.ChoiceFilter):
    """One of the values that occur in a column."""

    def __init__(self, model: type[Any], column: str, **kwargs: Any) -> None:
        def choices() -> list[tuple[str, str]]:
            values = model.objects.order_by(column).values_list(column, flat=True).distinct()
            return [(value, value) for value in values]

        super().__init__(
            field_name=kwargs.pop("field_name", column),
            choices=choices,
            empty_label=_("All"),
            **kwargs,
        )


class AcceleratorFilter(django_filters.FilterSet):
    q = SearchFilter("name", "slug", "vendor", "aliases")
    vendor = OccurringFilter(Accelerator, "vendor", label=_("Maker"))
    generation = OccurringFilter(Accelerator, "generation", label=_("Generation"))
    memory_gb = django_filters.NumberFilter(
        method="at_least_gb", label=_("Memory from (GB)"), min_value=0
    )
    sort = SortFilter(
        {
            "name": ("name", _("name")),
            "year": ("year", _("year")),
            "memory": ("current__hbm_bytes", _("memory")),
            "bandwidth": ("current__hbm_bandwidth", _("memory bandwidth")),
            "bf16": ("current__peak_flops__bf16", _("BF16 dense")),
            "fp8": ("current__peak_flops__fp8", _("FP8 dense")),
            "link": ("current__link_bandwidth", _("link")),
            "tdp": ("current__tdp", _("power")),
        }
    )

    class Meta:
        model = Accelerator
        fields: list[str] = []

    def at_least_gb(
        self, queryset: QuerySet[Accelerator], name: str, value: Any
    ) -> QuerySet[Accelerator]:
        return queryset.filter(current__hbm_bytes__gte=float(value) * 1e9)


class ModelFilter(django_filters.FilterSet):
    q = SearchFilter("name", "slug", "family")
    family = OccurringFilter(ModelArchitecture, "family", label=_("Family"))
    kind = django_filters.ChoiceFilter(
        choices=ModelArchitecture.Kind.choices, empty_label=_("All"), label=_("Kind")
    )
    sort = SortFilter(
        {
            "name": ("name", _("name")),
            "params": ("current__params_total", _("parameters")),
            "active": ("current__params_active", _("active parameters")),
            "context": ("current__max_context", _("longest context")),
        }
    )

    class Meta:
        model = ModelArchitecture
        fields: list[str] = []


class OfferPriceFilter(django_filters.FilterSet):
    q = SearchFilter(
        "offer__instance_type", "offer__region", "offer__accelerator__name", "offer__cloud"
    )
    cloud = OccurringFilter(CloudOffer, "cloud", field_name="offer__cloud", label=_("Cloud"))
    region = OccurringFilter(CloudOffer, "region", field_name="offer__region", label=_("Region"))
    accelerator = django_filters.ModelChoiceFilter(
        field_name="offer__accelerator",
        to_field_name="slug",
        queryset=Accelerator.objects.filter(offers__isnull=False).distinct(),
        empty_label=_("All"),
        label=_("Accelerator"),
    )
    kind = django_filters.ChoiceFilter(
        choices=OfferPrice.Kind.choices, empty_label=_("All"), label=_("Price kind")
    )
    currency = django_filters.ChoiceFilter(
        choices=CURRENCY_CHOICES, empty_label=_("All"), label=_("Currency")
    )
    sort = SortFilter(
        {
            "cloud": ("offer__cloud", _("cloud")),
            "region": ("offer__region", _("region")),
            "accelerator": ("offer__accelerator__name", _("accelerator")),
            "price": ("unit_price", _("price per accelerator-hour")),
            "date": ("as_of", _("date")),
        }
    )

    class Meta:
        model = OfferPrice
        fields: list[str] = []


class PlatformFilter(django_filters.FilterSet):
    q = SearchFilter("name", "accelerator__name")
    sort = SortFilter(
        {
            "name": ("name", _("name")),
            "power": ("current__max_power", _("power")),
            "space": ("current__rack_units", _("rack units")),
        }
    )

    class Meta:
        model = ServerPlatform
        fields: list[str] = []


class TcoFilter(django_filters.FilterSet):
    q = SearchFilter("key", "unit", "current__source")

    class Meta:
        model = TcoDefault
        fields: list[str] = []


class LeaseFilter(django_filters.FilterSet):
    lessor = django_filters.CharFilter(label=_("Lessor"), lookup_expr="icontains")
    platform = django_filters.CharFilter(
        label=_("Server platform"), field_name="platform__name", lookup_expr="icontains"
    )

    class Meta:
        model = LeaseOffer
        fields = ["lessor", "platform"]


class HardwarePriceFilter(django_filters.FilterSet):
    q = SearchFilter("accelerator__name", "platform__name", "source")
    currency = django_filters.ChoiceFilter(
        choices=CURRENCY_CHOICES, empty_label=_("All"), label=_("Currency")
    )
    condition = django_filters.ChoiceFilter(
        choices=PriceRecord.Condition.choices, empty_label=_("All"), label=_("Condition")
    )

    class Meta:
        model = PriceRecord
        fields: list[str] = []


class RateFilter(django_filters.FilterSet):
    base = django_filters.ChoiceFilter(
        choices=CURRENCY_CHOICES, empty_label=_("All"), label=_("One unit of")
    )
    quote = django_filters.ChoiceFilter(
        choices=CURRENCY_CHOICES, empty_label=_("All"), label=_("Costs in")
    )

    class Meta:
        model = ExchangeRate
        fields: list[str] = []
