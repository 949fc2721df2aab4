"""Addresses of this app: one list per part."""

from procurement.routes import reviews

urlpatterns = [*reviews.pages]
