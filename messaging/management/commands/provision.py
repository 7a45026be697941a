"""`provision FILE`: make what a file describes, as far as it is not there yet."""

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management import BaseCommand, CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from cowork import blueprint, provisioning
from timeline.clock import system_clock
from timeline.refusals import Refusal


class Command(BaseCommand):
    help = "Make workspaces, people, bots, teams and credentials as a YAML or JSON file says."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--json", action="store_true", help="print ids and secrets as JSON")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        try:
            written = parsed(options["file"])
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise CommandError(f"{options['file']}: {error}") from error
        migrate_when_needed()
        try:
            made = provisioning.provision(
                blueprint.read(written), environment=os.environ, clock=system_clock
            )
        except Refusal as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(json.dumps(made, indent=2) if options["json"] else told(made))


def parsed(path: Path) -> Any:
    """What the file says; `.json` is JSON to the letter, all else YAML."""
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        return json.loads(text)
    return yaml.load(text, Loader=yaml.CSafeLoader)


def migrate_when_needed() -> None:
    """Bring the database up to date, if it is not."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)


def told(made: dict[str, Any]) -> str:
    """What was made, for people."""
    lines = []
    for slug, workspace in made["workspaces"].items():
        lines.append(f"workspace {slug}: {len(workspace['bots'])} bots")
        lines += [f"  team {name}: {team}" for name, team in workspace["teams"].items()]
        lines += [
            f"  conversation of {row['bot']}, {row['title']}: {row['task_id']}"
            for row in workspace["conversations"]
        ]
        lines += [
            f"  credential {label}: {secret or 'existed before; its secret is not kept'}"
            for label, secret in workspace["credentials"].items()
        ]
    return "\n".join(lines)
