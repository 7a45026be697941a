"""`smoke_bots`: prove on a running server that two bots hand each other work (SPEC §17)."""

import json
import os
import re
import time
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.management import BaseCommand

from messaging.management import control_plane, smoke
from messaging.management.control_plane import ControlPlane, NoServer, OutOfReach, Refused
from messaging.management.smoke import Check, Unfit

NOT_PROVEN: Final = 2
DRY_RUN: Final = "Dry run: nothing was sent."
WORDS: Final = {
    "sender_delivered": "the sender's message is delivered",
    "recipient_delivered": "the recipient has taken in the marker",
    "acknowledged": "the recipient has said the word after ACK",
    "reply_received": "the sender has taken in the reply",
}


class Command(BaseCommand):
    help = "Let one bot hand a message to another on a running server, and look for four proofs."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--sender-task", required=True, type=task_id, metavar="ID")
        parser.add_argument("--recipient-task", required=True, type=task_id, metavar="ID")
        parser.add_argument("--marker", type=one_word, help="a word that stands nowhere yet")
        parser.add_argument("--timeout-ms", type=positive, default=120_000)
        parser.add_argument("--poll-ms", type=positive, default=1_500)
        parser.add_argument("--url", help=f"else {control_plane.URL}, else the server of this user")
        parser.add_argument("--token", help=f"of a service; else {control_plane.TOKEN}")
        parser.add_argument(
            "--allow-non-bot", action="store_true", help="other tasks too; diagnostic only"
        )
        parser.add_argument("--dry-run", action="store_true", help="show the prompt, send nothing")
        parser.add_argument("--json", action="store_true", help="report as JSON")

    def handle(self, *_arguments: Any, **options: Any) -> None:
        self._is_json: bool = options["json"]
        proofs = dict.fromkeys(smoke.PROOFS, False)
        try:
            access = control_plane.access(
                url=options["url"],
                token=options["token"],
                environment=os.environ,
                folder=Path(settings.COWORK_DATA_DIR),
            )
            with ControlPlane(access) as plane:
                has_passed = self._check(plane, options)
        except (NoServer, Unfit, Refused, OutOfReach) as reason:
            self._report(passed=False, proofs=proofs, hint=str(reason), snapshot={})
            has_passed = False
        if not has_passed:
            raise SystemExit(NOT_PROVEN)

    def _check(self, plane: ControlPlane, options: dict[str, Any]) -> bool:
        pair = smoke.find_pair(
            plane,
            options["sender_task"],
            options["recipient_task"],
            may_be_others=options["allow_non_bot"],
        )
        marker = options["marker"] or smoke.made_up("smoke")
        check = Check(plane, pair, marker=marker, ack=smoke.made_up("ack"))
        if options["dry_run"]:
            self._show(smoke.prompt(pair, marker=check.marker, ack=check.ack))
            return True
        check.begin()
        trouble = wait(check, timeout=options["timeout_ms"] / 1000, poll=options["poll_ms"] / 1000)
        notes = [trouble or check.hint, *([] if pair.is_of_bots else [smoke.DIAGNOSTIC])]
        self._report(
            passed=check.has_passed,
            proofs=check.proofs,
            hint=" ".join(notes),
            snapshot=check.snapshot,
        )
        return check.has_passed

    def _show(self, prompt: str) -> None:
        if self._is_json:
            proofs = dict.fromkeys(smoke.PROOFS, False)
            self._report(passed=False, proofs=proofs, hint=DRY_RUN, snapshot={"prompt": prompt})
        else:
            self.stdout.write(f"{prompt}\n\n{DRY_RUN}")

    def _report(self, **report: Any) -> None:
        if self._is_json:
            self.stdout.write(json.dumps(report, indent=2))
            return
        for proof, words in WORDS.items():
            self.stdout.write(f"{'proven' if report['proofs'][proof] else 'MISSING':<8} {words}")
        if not report["passed"]:
            self.stdout.write(json.dumps(report["snapshot"], indent=2))
        self.stdout.write(f"{'passed' if report['passed'] else 'FAILED'}: {report['hint']}")


def wait(check: Check, *, timeout: float, poll: float) -> str:
    """Look until it has passed, is over, or the time is up; what kept the last look from seeing."""
    ends_at = time.monotonic() + timeout
    while True:
        trouble = ""
        try:
            check.look()
        except OutOfReach as reason:
            trouble = str(reason)  # it may come back
        except Refused as refusal:
            return str(refusal)
        left = ends_at - time.monotonic()
        if check.is_over or left <= 0:
            return trouble
        time.sleep(min(poll, left))


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no positive whole number")
    return int(text)


def task_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no id of a task") from None


def one_word(text: str) -> str:
    if not re.fullmatch(r"[\w.:-]{1,128}", text):
        raise ArgumentTypeError(f"{text!r}: 1 to 128 letters, digits and . _ : - are wanted")
    return text
