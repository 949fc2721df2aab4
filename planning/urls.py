"""Addresses of this app."""

from django.urls import path

from planning.views import requests

urlpatterns = [path("requests/<int:pk>/", requests.request_detail, name="request-detail")]
