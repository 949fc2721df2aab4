"""Addresses of telemetry and calibration in the API."""

from django.urls import path

from planning.api import calibration, telemetry

SOURCE = "telemetry/sources/<int:pk>/"

api = [
    path("calibration/outcomes/", calibration.OutcomeList.as_view(), name="api-outcomes"),
    path(
        "calibration/outcomes/<int:pk>/leave-out/",
        calibration.OutcomeLeaveOut.as_view(),
        name="api-outcome-leave-out",
    ),
    path("calibration/versions/", calibration.VersionList.as_view(), name="api-calibration"),
    path("calibration/choose/", calibration.VersionChoose.as_view(), name="api-calibration-choose"),
    path("telemetry/", telemetry.FleetView.as_view(), name="api-telemetry"),
    path("telemetry/push/", telemetry.Push.as_view(), name="api-telemetry-push"),
    path("telemetry/sources/", telemetry.SourceList.as_view(), name="api-telemetry-sources"),
    path(SOURCE, telemetry.SourceDetail.as_view(), name="api-telemetry-source"),
    path(f"{SOURCE}loads/", telemetry.LoadList.as_view(), name="api-telemetry-loads"),
    path(f"{SOURCE}pull/", telemetry.SourcePull.as_view(), name="api-telemetry-pull"),
    path(f"{SOURCE}token/", telemetry.SourceToken.as_view(), name="api-telemetry-token"),
    path(f"{SOURCE}post/", telemetry.SourcePostBill.as_view(), name="api-telemetry-post"),
]
