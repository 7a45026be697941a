"""`doctor`: checks what must always hold, and mends what can be (SPEC §16.6)."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand

from messaging import invariants, mending
from timeline.clock import system_clock


class Command(BaseCommand):
    help = "Check the invariants of what is stored. Ends with 0 when all is well, else with 1."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repair", action="store_true", help="mend what can be mended")
        parser.add_argument("--json", action="store_true", help="print {ok, findings}")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        found = list(invariants.findings(now=system_clock.now()))
        if options["repair"] and found:
            mending.mend(found, clock=system_clock)
            found = list(invariants.findings(now=system_clock.now()))
        if options["json"]:
            rows = [{"rule": row.rule, "ids": row.ids, "text": row.text} for row in found]
            self.stdout.write(json.dumps({"ok": not found, "findings": rows}, indent=2))
        else:
            for row in found:
                self.stdout.write(f"{row.rule}: {row.text} ({', '.join(row.ids)})")
            self.stdout.write("All is well." if not found else f"{len(found)} findings.")
        if found:
            sys.exit(1)
