"""The app cowork, and the ports that it fills."""

from django.apps import AppConfig


class CoworkConfig(AppConfig):
    name = "cowork"
    verbose_name = "The work between tasks"

    def ready(self) -> None:
        from cowork import runtimes
        from cowork.runtimes.external import External
        from teams.models import RuntimeProfile

        runtimes.register(RuntimeProfile.Kind.EXTERNAL, External())
