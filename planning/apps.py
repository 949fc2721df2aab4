from django.apps import AppConfig


class PlanningConfig(AppConfig):
    name = "planning"

    def ready(self) -> None:
        from catalog import changes
        from planning import stock
        from planning.kinds_of_follow_up import register_own
        from planning.labels import name_own_actions
        from planning.selectors.owned_use import measured_utilisation

        name_own_actions()
        register_own()
        changes.listen("planning.tasks.outdate_studies")
        stock.register_utilisation(measured_utilisation)
