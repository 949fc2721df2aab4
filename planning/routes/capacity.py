"""Addresses of the capacity calendar."""

from django.urls import path

from planning.views import capacity

pages = [
    path("capacity/", capacity.capacity_calendar, name="capacity"),
    path("requests/<int:pk>/allocate/", capacity.allocation_book, name="allocation-book"),
    path("capacity/<int:pk>/move/", capacity.allocation_move, name="allocation-move"),
    path("capacity/<int:pk>/release/", capacity.allocation_release, name="allocation-release"),
    path("capacity/<int:pk>/renew/", capacity.allocation_renew, name="allocation-renew"),
]
