"""Addresses around a request in the API."""

from django.urls import path

from planning.api import discussion, templates

api = [
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
]
