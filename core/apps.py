from typing import Any

from django.apps import AppConfig
from django.core.validators import DecimalValidator, MaxValueValidator, MinValueValidator
from django.utils.translation import gettext_lazy as _


class CoreConfig(AppConfig):
    name = "core"

    def ready(self) -> None:
        """A limit that is broken is told with the value that broke it, by every form and model."""
        MinValueValidator.message = _("%(show_value)s is less than the least, %(limit_value)s.")
        MaxValueValidator.message = _("%(show_value)s is more than the most, %(limit_value)s.")
        told: dict[str, Any] = {
            **DecimalValidator.messages,
            "max_digits": _("%(value)s has more than %(max)s digits."),
            "max_decimal_places": _("%(value)s has more than %(max)s decimal places."),
            "max_whole_digits": _(
                "%(value)s has more than %(max)s digits before the decimal point."
            ),
        }
        DecimalValidator.messages = told
