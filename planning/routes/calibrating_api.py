"""Addresses of telemetry and calibration in the API."""

from django.urls import path

from planning.api import telemetry

api = [
    path("telemetry/", telemetry.FleetView.as_view(), name="api-telemetry"),
    path("telemetry/push/", telemetry.Push.as_view(), name="api-telemetry-push"),
    path("telemetry/sources/", telemetry.SourceList.as_view(), name="api-telemetry-sources"),
    path(
        "telemetry/sources/<int:pk>/", telemetry.SourceDetail.as_view(), name="api-telemetry-source"
    ),
    path(
        "telemetry/sources/<int:pk>/loads/",
        telemetry.LoadList.as_view(),
    path(
        "telemetry/sources/<int:pk>/pull/",
        telemetry.SourcePull.as_view(),
    path(
        "telemetry/sources/<int:pk>/token/",
        telemetry.SourceToken.as_view(),
    path(
        "telemetry/sources/<int:pk>/post/",
        telemetry.SourcePostBill.as_view(),
]
