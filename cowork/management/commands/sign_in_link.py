"""`sign_in_link [USERNAME]`: print a link that signs a user in once, within an hour."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError

from cowork.worker import files
from teams import installing, sign_in_links
from timeline.clock import system_clock


class Command(BaseCommand):
    help = "Print a link that signs a user in once, within an hour."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", nargs="?", default=installing.OWNER, metavar="USERNAME")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        users = get_user_model().objects
        user = users.filter(username=options["username"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {options['username']}.")
        token = sign_in_links.make(user, now=system_clock.now())
        self.stdout.write(base_url() + sign_in_links.PATH.format(token=token))


def base_url() -> str:
    """The address of the running server, else the public one."""
    try:
        described = json.loads((Path(settings.COWORK_DATA_DIR) / files.DESCRIPTOR).read_text())
    except (FileNotFoundError, ValueError):
        return str(settings.COWORK_PUBLIC_URL)
    return str(described["url"])
