"""Addresses of telemetry and calibration."""

from django.urls import path

from planning.views import (
    calibration,
    follow_ups,
    month_one,
    review_schedules,
    review_work,
    telemetry,
    trouble,
)

pages = [
    path("reviews/<int:pk>/actions/", review_work.action_add, name="review-action-add"),
    path("reviews/actions/<int:pk>/", review_work.action_detail, name="review-action"),
    path("reviews/actions/<int:pk>/end/", review_work.action_end, name="review-action-end"),
    path(
        "reviews/actions/<int:pk>/request/", follow_ups.action_request, name="review-action-request"
    ),
    path(
        "reviews/actions/<int:pk>/transfer/",
        follow_ups.action_transfer,
        name="review-action-transfer",
    ),
    path("reviews/<int:pk>/plans/<slug:slug>/", review_work.team_plan, name="team-plan"),
    path("reviews/<int:pk>/move/", review_work.review_move, name="review-move"),
    path("reviews/<int:pk>/cancel/", review_work.review_cancel, name="review-cancel"),
    path("reviews/<int:pk>/meeting/", review_work.review_meeting_plan, name="review-meeting"),
    path(
        "reviews/<int:pk>/invitation.ics", review_work.review_invitation, name="review-invitation"
    ),
    path("trouble/", trouble.trouble_list, name="trouble"),
    path("trouble/<slug:key>/", trouble.trouble_detail, name="trouble-detail"),
    path("month-one/", month_one.month_one_list, name="month-one-list"),
    path("month-one/<int:pk>/", month_one.month_one_detail, name="month-one"),
    path("month-one/<int:pk>/close/", month_one.month_one_close, name="month-one-close"),
    path("reviews/schedules/", review_schedules.schedule_list, name="review-schedules"),
    path("reviews/schedules/<int:pk>/", review_schedules.schedule_edit, name="review-schedule"),
    path("reviews/rules/", month_one.review_rules, name="review-rules"),
    path("calibration/", calibration.calibration_page, name="calibration"),
    path("calibration/outcomes/", calibration.outcome_record, name="outcome-record"),
    path(
        "calibration/outcomes/<int:pk>/leave-out/",
        calibration.outcome_leave_out,
        name="outcome-leave-out",
    ),
    path("calibration/learn/", calibration.calibration_learn, name="calibration-learn"),
    path("calibration/choose/", calibration.calibration_choose, name="calibration-choose"),
    path("telemetry/", telemetry.telemetry_fleet, name="telemetry"),
    path("telemetry/sources/", telemetry.source_list, name="telemetry-sources"),
    path("telemetry/sources/new/", telemetry.source_create, name="telemetry-source-new"),
    path("telemetry/sources/<int:pk>/", telemetry.source_detail, name="telemetry-source"),
    path("telemetry/sources/<int:pk>/edit/", telemetry.source_edit, name="telemetry-source-edit"),
    path("telemetry/sources/<int:pk>/load/", telemetry.source_load, name="telemetry-source-load"),
    path("telemetry/sources/<int:pk>/pull/", telemetry.source_pull, name="telemetry-source-pull"),
    path(
        "telemetry/sources/<int:pk>/token/", telemetry.source_token, name="telemetry-source-token"
    ),
    path(
        "telemetry/sources/<int:pk>/post/", telemetry.source_post_bill, name="telemetry-source-post"
    ),
]
