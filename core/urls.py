"""Pages of the kernel: home, notices, jobs, language, the component gallery, the audit trail."""

from django.urls import path

from core import health, views

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("notices/", views.notice_list, name="notice-list"),
    path("notices/<int:pk>/open/", views.notice_open, name="notice-open"),
    path("jobs/<uuid:pk>/", views.job_detail, name="job-detail"),
    path("jobs/<uuid:pk>/cancel/", views.job_cancel, name="job-cancel"),
    path("audit/", views.audit_list, name="audit-list"),
    path("preferences/", views.preferences, name="preferences"),
    path("gallery/", views.gallery, name="gallery"),
]
