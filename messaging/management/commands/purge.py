"""`purge`: forgets the texts of messages that are old and done with (SPEC §16.5, §16.6)."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from messaging import purging
from timeline.clock import system_clock


class Command(BaseCommand):
    help = "Forget old texts that are done with. Events, receipts and their hashes stay."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=int, help="how old a text has to be (else COWORK_RETENTION_DAYS)"
        )
        parser.add_argument("--dry-run", action="store_true", help="count them, change nothing")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        asked = options["days"]
        days = settings.COWORK_RETENTION.days if asked is None else asked
        if days < 1:
            raise CommandError("Texts are kept for ever: name at least 1 day in --days.")
        keep = timedelta(days=days)
        if options["dry_run"]:
            count = purging.count_purgeable(keep=keep, clock=system_clock)
            self.stdout.write(f"{count} texts older than {days} days would be forgotten.")
        else:
            count = purging.purge(keep=keep, clock=system_clock)
            self.stdout.write(f"{count} texts older than {days} days are forgotten.")
