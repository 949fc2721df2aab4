"""All addresses. Each app brings its pages; the API is one tree under /api/v1/."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView

from config import views

urlpatterns = [
    path("", views.home, name="home"),
    path("", include("core.urls")),
    path("catalog/", include("catalog.urls")),
    path("", include("planning.urls")),
    path("procurement/", include("procurement.urls")),
    # Addresses are given by an administrator (see core.accounts): the page that would change them leads elsewhere.
    path("accounts/email/", RedirectView.as_view(pattern_name="preferences")),
    path("accounts/", include("allauth.urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("support/", admin.site.urls),
    path("api/v1/", include("config.api_urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
]

handler400 = "core.error_pages.bad_request"
handler403 = "core.error_pages.forbidden"
handler404 = "core.error_pages.not_found"
handler500 = "core.error_pages.server_error"
