"""The app cowork, and the ports that it fills."""

from django.apps import AppConfig


class CoworkConfig(AppConfig):
    name = "cowork"
    verbose_name = "The work between tasks"

    def ready(self) -> None:
        from django.core import checks as system_checks

        from cowork import checks, restarting, runtimes, sweeps
        from cowork.runtimes.external import External
        from teams.models import RuntimeProfile

        runtimes.register(RuntimeProfile.Kind.EXTERNAL, External())
        system_checks.register(checks.worker_settings)
        sweeps.register(restarting.let_waiting_run, at_start=True)
