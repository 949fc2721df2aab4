"""The API tree: each app adds its routes here."""

from django.urls import include, path

urlpatterns = [
    path("", include("core.api_urls")),
    path("catalog/", include("catalog.api_urls")),
    path("", include("planning.api_urls")),
    path("procurement/", include("procurement.api_urls")),
]
