from django.apps import AppConfig


class ProcurementConfig(AppConfig):
    name = "procurement"

    def ready(self) -> None:
        from procurement.labels import name_own_actions

        name_own_actions()
