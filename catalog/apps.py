from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from core.labels import name_actions


class CatalogConfig(AppConfig):
    name = "catalog"

    def ready(self) -> None:
        name_actions(
            {
                "accelerator.corrected": _("Accelerator figures corrected"),
                "accelerator.revised": _("Accelerator figures updated with the product"),
                "architecture.corrected": _("Model shape corrected"),
                "architecture.revised": _("Model shape updated with the product"),
                "platform.corrected": _("Platform figures corrected"),
                "platform.revised": _("Platform figures updated with the product"),
                "tco_default.corrected": _("Cost default replaced"),
                "tco_default.revised": _("Cost default updated with the product"),
                "price.added": _("Price added"),
                "lease.added": _("Lease added"),
                "price_import.started": _("Price file uploaded"),
                "price_import.applied": _("Prices imported"),
                "price_import.discarded": _("Price file put aside"),
                "exchange_rate.added": _("Exchange rate added"),
            }
        )
