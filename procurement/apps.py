from django.apps import AppConfig


class ProcurementConfig(AppConfig):
    name = "procurement"

    def ready(self) -> None:
        from planning import stock, supply
        from procurement.labels import name_own_actions
        from procurement.selectors.stock import free_cards
        from procurement.selectors.supply import bound_cards, card_supply, lead_days

        name_own_actions()
        stock.register(free_cards)
        supply.register(card_supply)
        supply.register_lead(lead_days)
        supply.register_bound(bound_cards)
