"""The support pages: only what is read-only.

Other packages' own admin pages (keys, second factors, addresses) would be a side door to acting as somebody else, so
they are not registered.
"""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig


class SupportSite(AdminSite):
    """Takes ReadOnlyAdmin and its subclasses; leaves everything else out."""

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        from core.admin import ReadOnlyAdmin  # models are not loaded yet when this module is

        if isinstance(admin_class, type) and issubclass(admin_class, ReadOnlyAdmin):
            super().register(model_or_iterable, admin_class, **options)


class SupportConfig(AdminConfig):
    default_site = "config.support.SupportSite"
