"""Addresses of this app: one list per part."""

from procurement.routes import buying, reviews

urlpatterns = [*buying.pages, *reviews.pages]
