"""API addresses of the kernel."""

from django.urls import path

from core import api

urlpatterns = [
    path("me/", api.MeView.as_view(), name="api-me"),
    path("me/api-key/", api.TokenView.as_view(), name="api-token"),
    path("jobs/<uuid:pk>/", api.JobView.as_view(), name="api-job"),
    path("jobs/<uuid:pk>/cancel/", api.JobCancelView.as_view(), name="api-job-cancel"),
    path("notices/", api.NoticeList.as_view(), name="api-notices"),
    path("audit/", api.AuditList.as_view(), name="api-audit"),
]
