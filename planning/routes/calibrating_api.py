"""Addresses of telemetry and calibration in the API."""

from django.urls import path

from planning.api import (
    calibration,
    follow_ups,
    month_one,
    review_schedules,
    review_work,
    telemetry,
    trouble,
)

SOURCE = "telemetry/sources/<int:pk>/"

api = [
    path("reviews/<int:pk>/actions/", review_work.ActionList.as_view(), name="api-review-actions"),
    path(
        "reviews/actions/<int:pk>/end/",
        review_work.ActionEnd.as_view(),
        name="api-review-action-end",
    ),
    path(
        "reviews/actions/<int:pk>/request/",
        follow_ups.ActionRequest.as_view(),
        name="api-review-action-request",
    ),
    path(
        "reviews/actions/<int:pk>/transfer/",
        follow_ups.ActionTransfer.as_view(),
        name="api-review-action-transfer",
    ),
    path(
        "reviews/<int:pk>/plans/<slug:slug>/",
        review_work.TeamPlanView.as_view(),
        name="api-team-plan",
    ),
    path("reviews/<int:pk>/move/", review_work.ReviewMove.as_view(), name="api-review-move"),
    path("reviews/<int:pk>/cancel/", review_work.ReviewCancel.as_view(), name="api-review-cancel"),
    path(
        "reviews/<int:pk>/meeting/", review_work.ReviewMeeting.as_view(), name="api-review-meeting"
    ),
    path("trouble/", trouble.TroubleList.as_view(), name="api-trouble"),
    path("trouble/<slug:key>/", trouble.TroubleDetail.as_view(), name="api-trouble-detail"),
    path("month-one/", month_one.MonthOneList.as_view(), name="api-month-one-list"),
    path("month-one/<int:pk>/", month_one.MonthOneDetail.as_view(), name="api-month-one"),
    path(
        "month-one/<int:pk>/close/", month_one.MonthOneClose.as_view(), name="api-month-one-close"
    ),
    path("review-schedules/", review_schedules.ScheduleList.as_view(), name="api-review-schedules"),
    path(
        "review-schedules/<int:pk>/",
        review_schedules.ScheduleDetail.as_view(),
        name="api-review-schedule",
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
