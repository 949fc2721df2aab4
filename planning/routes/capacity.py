"""Addresses of the capacity calendar, and of what it costs."""

from django.urls import path

from planning.views import capacity, forecast, probabilities

pages = [
    path("capacity/", capacity.capacity_calendar, name="capacity"),
    path("requests/<int:pk>/allocate/", capacity.allocation_book, name="allocation-book"),
    path("capacity/<int:pk>/move/", capacity.allocation_move, name="allocation-move"),
    path("capacity/<int:pk>/release/", capacity.allocation_release, name="allocation-release"),
    path("capacity/<int:pk>/renew/", capacity.allocation_renew, name="allocation-renew"),
    path("budgets/forecast/", forecast.budget_forecast, name="budget-forecast"),
    path("budgets/probabilities/", probabilities.probability_page, name="probabilities"),
    path("budgets/costs/", forecast.team_costs, name="team-costs"),
    path("budgets/costs/<str:kind>/", forecast.team_costs_export, name="team-costs-export"),
    path("budgets/what-if/", forecast.ledger_what_if, name="ledger-what-if"),
    path("budgets/what-if/propose/", forecast.ledger_propose, name="ledger-propose"),
]
