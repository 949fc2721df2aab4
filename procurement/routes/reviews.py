"""Addresses of the reviews' procurement side."""

from django.urls import path

from procurement.api import reviews as api
from procurement.views import reviews as views

pages = [path("reviews/<int:pk>/freeze/", views.review_freeze, name="review-freeze")]
api_routes = [
    path("reviews/<int:pk>/freeze/", api.ReviewFreeze.as_view(), name="api-review-freeze")
]
