"""`demo`: make the demo team in workspace `main`, as far as it is not there yet (SPEC §16.6)."""

from typing import Any

from django.core.management import BaseCommand, CommandError

from cowork import blueprint, provisioning
from messaging.management import demo_team
from messaging.management.commands.provision import migrate_when_needed
from teams import installing
from teams.models import Bot
from timeline.clock import system_clock
from timeline.refusals import Refusal


class Command(BaseCommand):
    help = "Make a team of five bots that follow scripts, in workspace main. Safe to repeat."
    requires_system_checks = ()

    def handle(self, *_arguments: Any, **_options: Any) -> None:
        migrate_when_needed()
        names = ", ".join(bot.name for bot in demo_team.BOTS)
        if is_there():
            # A person may have archived, renamed or put out of use any of it: that stays so.
            self.stdout.write(f"The demo team is there: {names}.")
            return
        installing.install(clock=system_clock)
        try:
            provisioning.provision(
                blueprint.read(demo_team.plan()), environment={}, clock=system_clock
            )
        except Refusal as refusal:
            raise CommandError(f"The demo team can't be made: {refusal.detail}") from refusal
        self.stdout.write(
            f"Made the demo team in workspace {installing.MAIN}: {names}. They follow scripts: "
            "no model is asked."
        )


def is_there() -> bool:
    """Whether all bots of the team are, active or not; a half-made team can't be."""
    handles = [bot.handle for bot in demo_team.BOTS]
    found = Bot.objects.filter(workspace__slug=installing.MAIN, handle__in=handles)
    return found.count() == len(handles)
