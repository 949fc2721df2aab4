"""Addresses of the capacity calendar in the API."""

from django.urls import path

from planning.api import capacity

api = [
    path("capacity/", capacity.Calendar.as_view(), name="api-capacity"),
    path("allocations/", capacity.AllocationList.as_view(), name="api-allocations"),
    path("requests/<int:pk>/allocate/", capacity.Book.as_view(), name="api-allocation-book"),
    path("allocations/<int:pk>/move/", capacity.Move.as_view(), name="api-allocation-move"),
    path(
        "allocations/<int:pk>/release/", capacity.Release.as_view(), name="api-allocation-release"
    ),
    path("allocations/<int:pk>/renew/", capacity.Renew.as_view(), name="api-allocation-renew"),
]
