"""Filters of lists, the same for page and API; the address is the saved filter."""

from __future__ import annotations

import re
from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from core.models import Team
from planning.models import Budget, CapacityRequest
from planning.models.plans import SpendKind
from planning.models.requests import visible_teams
from planning.states import OPEN_REQUEST, RequestStatus
from planning.workloads import Kind

_REFERENCE = re.compile(r"(?:R-)?0*(\d{1,9})", re.IGNORECASE)


def _own_teams(request: Any) -> QuerySet[Team]:
    """Teams that may be chosen: a filter must not tell which others exist."""
    if request is None:
        return Team.objects.none()
    teams = visible_teams(request.user)
    return Team.objects.all() if teams is None else Team.objects.filter(pk__in=teams)


class RequestFilter(django_filters.FilterSet):
    """By text (title or number), team, state and kind."""

    q = django_filters.CharFilter(
        method="search",
        label=_("Title or number"),
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    team = django_filters.ModelChoiceFilter(
        queryset=_own_teams, to_field_name="slug", label=_("Team"), empty_label=_("All")
    )
    status = django_filters.ChoiceFilter(
        method="in_state",
        choices=[("open", _("All that are open")), *RequestStatus.choices],
        label=_("State"),
        empty_label=_("All"),
    )
    kind = django_filters.ChoiceFilter(choices=Kind.choices, label=_("Kind"), empty_label=_("All"))

    class Meta:
        model = CapacityRequest
        fields = ["q", "team", "status", "kind"]

    def in_state(
        self, queryset: QuerySet[CapacityRequest], name: str, value: str
    ) -> QuerySet[CapacityRequest]:
        return queryset.filter(status__in=OPEN_REQUEST if value == "open" else [value])

    def search(
        self, queryset: QuerySet[CapacityRequest], name: str, value: str
    ) -> QuerySet[CapacityRequest]:
        found = Q(title__icontains=value.strip())
        if match := _REFERENCE.fullmatch(value.strip()):
            found |= Q(number=int(match.group(1)))
        return queryset.filter(found)


class BudgetFilter(django_filters.FilterSet):
    """By team, fiscal year, quarter and kind."""

    team = django_filters.ModelChoiceFilter(
        queryset=_own_teams, to_field_name="slug", label=_("Team"), empty_label=_("All")
    )
    fiscal_year = django_filters.NumberFilter(label=_("Fiscal year"))
    quarter = django_filters.ChoiceFilter(
        choices=[(n, f"Q{n}") for n in range(1, 5)], label=_("Quarter"), empty_label=_("All")
    )
    kind = django_filters.ChoiceFilter(
        choices=SpendKind.choices, label=_("Kind"), empty_label=_("All")
    )

    class Meta:
        model = Budget
        fields = ["team", "fiscal_year", "quarter", "kind"]
