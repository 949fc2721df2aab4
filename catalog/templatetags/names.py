"""Names of catalogue rows in templates. Loaded as built-ins."""

from django import template

from catalog import reference

register = template.Library()
register.filter("accelerator", reference.accelerator_label)
register.filter("model", reference.model_label)
