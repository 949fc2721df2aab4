"""Pages of the kernel: notices, jobs, the audit trail, preferences, the component gallery. Probes: core/health.py."""

from django.urls import path

from core import gallery, views

urlpatterns = [
    path("notices/", views.notice_list, name="notice-list"),
    path("notices/read/", views.notice_read_all, name="notice-read-all"),
    path("notices/<int:pk>/open/", views.notice_open, name="notice-open"),
    path("jobs/", views.job_list, name="job-list"),
    path("jobs/<uuid:pk>/", views.job_detail, name="job-detail"),
    path("jobs/<uuid:pk>/cancel/", views.job_cancel, name="job-cancel"),
    path("jobs/<uuid:pk>/retry/", views.job_retry, name="job-retry"),
    path("audit/", views.audit_list, name="audit-list"),
    path("audit/export.<str:kind>", views.audit_export, name="audit-export"),
    path("audit/<int:pk>/", views.audit_detail, name="audit-detail"),
    path("preferences/", views.preferences, name="preferences"),
    path("preferences/api-key/", views.token_issue, name="token-issue"),
    path("preferences/api-key/revoke/", views.token_revoke, name="token-revoke"),
    path("theme/", views.set_theme, name="set-theme"),
    path("gallery/", gallery.gallery, name="gallery"),
]
