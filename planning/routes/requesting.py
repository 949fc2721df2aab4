"""Addresses around a request: talk, papers, templates, regrouping."""

from django.urls import path

from planning.views import bids, bulk, discussion, load_series, templates

pages = [
    path("spot/ceilings/", bids.bid_page, name="bids"),
    path("requests/<int:pk>/comments/", discussion.comment_add, name="comment-add"),
    path("requests/<int:pk>/watch/", discussion.watch_set, name="request-watch"),
    path("requests/<int:pk>/files/", discussion.file_add, name="request-file-add"),
    path("requests/<int:pk>/files/<int:file>/", discussion.file_read, name="request-file"),
    path(
        "requests/<int:pk>/files/<int:file>/remove/",
        discussion.file_remove,
        name="request-file-remove",
    ),
    path("requests/<int:pk>/load/", load_series.load_series_page, name="load-series"),
    path("requests/<int:pk>/split/", templates.request_split, name="request-split"),
    path("requests/merge/", templates.request_merge, name="request-merge"),
    path("requests/<int:pk>/template/", templates.template_save, name="template-save"),
    path("requests/templates/", templates.template_list, name="template-list"),
    path("requests/templates/<int:pk>/use/", templates.template_use, name="template-use"),
    path("requests/templates/<int:pk>/retire/", templates.template_retire, name="template-retire"),
    path("requests/export/<str:kind>/", bulk.request_export, name="request-export"),
    path("requests/import/", bulk.request_import, name="request-import"),
    path("requests/import/template/", bulk.import_template, name="request-import-template"),
    path("requests/import/<int:pk>/", bulk.import_detail, name="request-import-detail"),
    path(
        "requests/import/<int:pk>/encoding/", bulk.import_encoding, name="request-import-encoding"
    ),
    path("requests/import/<int:pk>/apply/", bulk.import_apply, name="request-import-apply"),
    path("requests/import/<int:pk>/discard/", bulk.import_discard, name="request-import-discard"),
    path("requests/bulk/", bulk.bulk_step, name="request-bulk"),
    path("approvals/bulk/", bulk.bulk_approve, name="approval-bulk"),
    path("requests/filters/", bulk.filter_save, name="filter-save"),
    path("requests/filters/<int:pk>/", bulk.filter_open, name="filter-open"),
    path("requests/filters/<int:pk>/delete/", bulk.filter_delete, name="filter-delete"),
]
