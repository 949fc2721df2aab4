"""Entry point for gunicorn. Everything that a first request or a first job would import is imported here, before the
processes part: nobody waits for it, and they share its memory."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()

from config.celery import app  # noqa: E402  (needs the settings)

get_resolver().url_patterns  # noqa: B018  (read for what it imports)
app.loader.import_default_modules()
