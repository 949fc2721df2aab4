"""Addresses by theme, for planning.urls and planning.api_urls."""
