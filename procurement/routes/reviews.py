"""Addresses of the reviews' procurement side."""

from django.urls import path

from procurement.api import reviews as api
from procurement.views import follow_ups
from procurement.views import reviews as views

pages = [
    path("reviews/<int:pk>/freeze/", views.review_freeze, name="review-freeze"),
    path("reviews/actions/<int:pk>/rfq/", follow_ups.action_rfq, name="review-action-rfq"),
]
api_routes = [
    path("reviews/<int:pk>/freeze/", api.ReviewFreeze.as_view(), name="api-review-freeze"),
    path("reviews/actions/<int:pk>/rfq/", api.ActionRfq.as_view(), name="api-review-action-rfq"),
]
