from django.apps import AppConfig


class PlanningConfig(AppConfig):
    name = "planning"

    def ready(self) -> None:
        from planning.labels import name_own_actions

        name_own_actions()
