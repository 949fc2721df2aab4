from django.apps import AppConfig


class PlanningConfig(AppConfig):
    name = "planning"

    def ready(self) -> None:
        from catalog import changes
        from planning.labels import name_own_actions

        name_own_actions()
        changes.listen("planning.tasks.outdate_studies")
