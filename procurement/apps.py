from django.apps import AppConfig


class ProcurementConfig(AppConfig):
    name = "procurement"

    def ready(self) -> None:
        from planning import stock
        from procurement.labels import name_own_actions
        from procurement.selectors.stock import free_cards

        name_own_actions()
        stock.register(free_cards)
