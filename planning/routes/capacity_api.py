"""Addresses of the capacity calendar in the API."""

from django.urls import path

from planning.api import capacity, forecast

api = [
    path("capacity/", capacity.Calendar.as_view(), name="api-capacity"),
    path("allocations/", capacity.AllocationList.as_view(), name="api-allocations"),
    path("requests/<int:pk>/allocate/", capacity.Book.as_view(), name="api-allocation-book"),
    path("allocations/<int:pk>/move/", capacity.Move.as_view(), name="api-allocation-move"),
    path(
        "allocations/<int:pk>/release/", capacity.Release.as_view(), name="api-allocation-release"
    ),
    path("allocations/<int:pk>/renew/", capacity.Renew.as_view(), name="api-allocation-renew"),
    path("budget-forecast/", forecast.BudgetForecast.as_view(), name="api-forecast"),
    path("probabilities/", forecast.Probabilities.as_view(), name="api-probabilities"),
    path("showback/", forecast.Showback.as_view(), name="api-showback"),
    path("ledger/what-if/", forecast.WhatIf.as_view(), name="api-what-if"),
    path("ledger/what-if/propose/", forecast.Propose.as_view(), name="api-what-if-propose"),
]
