"""Addresses of this app: one list per part."""

from procurement.routes import buying, proving, reviews

urlpatterns = [*buying.pages, *proving.pages, *reviews.pages]
