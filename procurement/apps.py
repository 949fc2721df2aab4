from django.apps import AppConfig


class ProcurementConfig(AppConfig):
    name = "procurement"

    def ready(self) -> None:
        from planning import stock, supply, waiting
        from procurement.labels import name_own_actions
        from procurement.selectors.stock import free_cards
        from procurement.selectors.supply import bound_cards, card_supply, lead_days
        from procurement.services.follow_ups import register_rfqs
        from procurement.waiting import waiting_in_buying

        name_own_actions()
        register_rfqs()
        waiting.register(waiting_in_buying)
        stock.register(free_cards)
        supply.register(card_supply)
        supply.register_lead(lead_days)
        supply.register_bound(bound_cards)
