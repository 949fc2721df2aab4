"""The API tree: each app adds its routes here."""

from django.urls import include, path

from config.api_index import ApiIndex

urlpatterns = [
    path("", ApiIndex.as_view(), name="api-index"),
    path("", include("core.api_urls")),
    path("catalog/", include("catalog.api_urls")),
    path("", include("planning.api_urls")),
    path("procurement/", include("procurement.api_urls")),
]
