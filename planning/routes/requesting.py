"""Addresses around a request: talk, papers, templates, regrouping."""

from django.urls import path

from planning.views import discussion, templates

pages = [
    path("requests/<int:pk>/comments/", discussion.comment_add, name="comment-add"),
    path("requests/<int:pk>/watch/", discussion.watch_set, name="request-watch"),
    path("requests/<int:pk>/files/", discussion.file_add, name="request-file-add"),
    path("requests/<int:pk>/files/<int:file>/", discussion.file_read, name="request-file"),
    path(
        "requests/<int:pk>/files/<int:file>/remove/",
        discussion.file_remove,
        name="request-file-remove",
    ),
    path("requests/<int:pk>/split/", templates.request_split, name="request-split"),
    path("requests/merge/", templates.request_merge, name="request-merge"),
    path("requests/<int:pk>/template/", templates.template_save, name="template-save"),
    path("requests/templates/", templates.template_list, name="template-list"),
    path("requests/templates/<int:pk>/use/", templates.template_use, name="template-use"),
    path("requests/templates/<int:pk>/retire/", templates.template_retire, name="template-retire"),
]
