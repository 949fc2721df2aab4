"""API addresses of this app: one list per part."""

from procurement.routes import buying_api, reviews

urlpatterns = [*buying_api.api_routes, *reviews.api_routes]
