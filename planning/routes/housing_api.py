"""Addresses of machine rooms and of the organisation's stage in the API."""

from django.urls import path

from planning.api import sites

api = [
    path("organisation/stage/", sites.StageView.as_view(), name="api-organisation-stage"),
    path("sites/", sites.SiteList.as_view(), name="api-sites"),
    path("sites/<int:pk>/", sites.SiteDetail.as_view(), name="api-site"),
]
