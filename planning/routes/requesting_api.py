"""Addresses around a request in the API."""

from django.urls import path

from planning.api import bids, bulk, discussion, load_series, templates

api = [
    path("spot/ceilings/", bids.BidView.as_view(), name="api-bids"),
    path(
        "requests/<int:pk>/comments/",
        discussion.CommentList.as_view(),
        name="api-request-comments",
    ),
    path("requests/<int:pk>/watch/", discussion.Watch.as_view(), name="api-request-watch"),
    path("requests/<int:pk>/files/", discussion.FileList.as_view(), name="api-request-files"),
    path(
        "requests/<int:pk>/files/<int:file>/",
        discussion.FileRead.as_view(),
        name="api-request-file",
    ),
    path(
        "requests/<int:pk>/load-series/",
        load_series.LoadSeriesView.as_view(),
        name="api-load-series",
    ),
    path("requests/<int:pk>/split/", templates.RequestSplit.as_view(), name="api-request-split"),
    path("requests/merge/", templates.RequestMerge.as_view(), name="api-request-merge"),
    path(
        "requests/<int:pk>/origins/", templates.RequestOrigins.as_view(), name="api-request-origins"
    ),
    path("request-templates/", templates.TemplateList.as_view(), name="api-templates"),
    path(
        "request-templates/<int:pk>/use/", templates.TemplateUse.as_view(), name="api-template-use"
    ),
    path(
        "request-templates/<int:pk>/retire/",
        templates.TemplateRetire.as_view(),
        name="api-template-retire",
    ),
    path("requests/export/<str:kind>/", bulk.Export.as_view(), name="api-request-export"),
    path("requests/bulk/", bulk.BulkStep.as_view(), name="api-request-bulk"),
    path("approvals/bulk/", bulk.BulkApprove.as_view(), name="api-approval-bulk"),
    path("request-imports/", bulk.ImportList.as_view(), name="api-imports"),
    path("request-imports/<int:pk>/", bulk.ImportDetail.as_view(), name="api-import"),
    path(
        "request-imports/<int:pk>/encoding/",
        bulk.ImportEncoding.as_view(),
        name="api-import-encoding",
    ),
    path("request-imports/<int:pk>/apply/", bulk.ImportApply.as_view(), name="api-import-apply"),
    path(
        "request-imports/<int:pk>/discard/", bulk.ImportDiscard.as_view(), name="api-import-discard"
    ),
    path("saved-filters/", bulk.FilterList.as_view(), name="api-filters"),
    path("saved-filters/<int:pk>/", bulk.FilterDetail.as_view(), name="api-filter"),
]
