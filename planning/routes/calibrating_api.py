"""Addresses of telemetry and calibration in the API."""

from django.urls import path

from planning.api import calibration, month_one, telemetry, trouble

SOURCE = "telemetry/sources/<int:pk>/"

api = [
    path("trouble/", trouble.TroubleList.as_view(), name="api-trouble"),
    path("trouble/<slug:key>/", trouble.TroubleDetail.as_view(), name="api-trouble-detail"),
    path("month-one/", month_one.MonthOneList.as_view(), name="api-month-one-list"),
    path("month-one/<int:pk>/", month_one.MonthOneDetail.as_view(), name="api-month-one"),
    path(
        "month-one/<int:pk>/close/", month_one.MonthOneClose.as_view(), name="api-month-one-close"
    ),
    path("review-rules/", month_one.RulesView.as_view(), name="api-review-rules"),
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
