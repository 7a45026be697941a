"""`recover`: repair what a crash left, as every start does (SPEC §16.4)."""

from typing import Any

from django.core.management import BaseCommand, CommandError

from cowork import jobs
from timeline.clock import system_clock
from timeline.ids import new_id


class Command(BaseCommand):
    help = "Repair what a crash left. Safe to repeat, and beside a running server."

    def handle(self, *_arguments: Any, **_options: Any) -> None:
        if not jobs.recover(owner=f"command:{new_id()}", clock=system_clock):
            raise CommandError("Another process recovers just now.")
        self.stdout.write("Recovered.")
