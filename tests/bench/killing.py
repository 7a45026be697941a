"""B9: processes are killed under messages; how soon turns start again, and what is lost."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import statistics
import time
from typing import Any

import psutil

from tests.bench import installations, load, processes
from tests.bench.figures import Line, Report
from tests.bench.installations import Place
from tests.bench.load import Caller

RECIPIENTS = 4
STARTED = "SELECT count(*) FROM messaging_receipt WHERE NOT is_automatic AND started_at IS NOT NULL"
PATIENCE = 30.0


class Sender:
    """Sends messages to scripts, each with a number of its own."""

    def __init__(self, where: Place, made: Any) -> None:
        self.count = 0
        self._caller = Caller(
            where.port,
            "/api/v1/send_agent_message",
            {"Authorization": f"Bearer {made['credentials']['s0-key']}"},
            lambda number: json.dumps(
                {"bot": f"r{number % RECIPIENTS}", "message": "On.", "message_id": f"b9-{number}"}
            ).encode(),
        )

    def send(self, count: int) -> None:
        load.call([self._caller], range(self.count, self.count + count), status=202)
        self.count += count


def b9(_server_url: str, *, quick: bool) -> list[Report]:
    workers, everything = (4, 1) if quick else (30, 5)
    with installations.ours() as where:
        made = installations.provision(where, installations.lab(1, RECIPIENTS, rules=[]))
        sender = Sender(where, made)
        after_worker, after_all = [], []
        for number in range(everything):
            share = workers // everything
            after_worker += _kill_workers(where, sender, share)
            after_all.append(_kill_everything(where, sender, number))
        told = json.loads(where.run("-m", "tests.bench.inside", "counts"))
    report = Report("B9", f"{workers} kills of a worker's process, {everything} of everything")
    report.lines = [
        Line("worker killed → started again, longest", max(after_worker), "s", at_most=2),
        Line("new server up → all started, longest", max(after_all), "s", at_most=1),
        Line("lost", told["accepted"] - told["delivered"] + told["lost"], "messages", at_most=0),
        Line("recorded twice", told["twice"], "messages", at_most=0),
    ]
    report.notes = [
        f"worker killed → started again, median: {statistics.median(after_worker):.2f} s",
        f"accepted {sender.count}, gaps in timelines {told['gaps']}",
    ]
    return [report]


def _kill_workers(where: Place, sender: Sender, count: int) -> list[float]:
    """Kill one process of the cluster right after a message was accepted; time to its start."""
    taken = []
    with installations.up(where, "--workers", "2") as pid:
        for _number in range(count):
            processes.until(lambda: len(_workers(pid)) >= len(WHOLE), PATIENCE, "the cluster", 0.05)
            time.sleep(random.uniform(0.3, 0.6))
            victim = random.choice(_workers(pid))
            sender.send(1)
            os.kill(victim, signal.SIGKILL)
            began = time.monotonic()
            sender.send(1)
            _all_started(where, sender)
            taken.append(time.monotonic() - began)
    return taken


# django-q2's main process, its sentinel, monitor, pusher, two drains and one to spare.
WHOLE = range(7)


def _kill_everything(where: Place, sender: Sender, _number: int) -> float:
    """Kill all processes with messages on their way; from the new server's first answer."""
    with installations.up(where):
        sender.send(8)
    with installations.up(where):
        began = time.monotonic()
        _all_started(where, sender)
        taken = time.monotonic() - began
        time.sleep(0.5)  # let the last turns end
    return taken


def _all_started(where: Place, sender: Sender) -> None:
    def is_so() -> bool:
        with contextlib.closing(sqlite3.connect(f"file:{where.sqlite}?mode=ro", uri=True)) as rows:
            [[number]] = rows.execute(STARTED)
        return bool(number >= sender.count)

    processes.until(is_so, PATIENCE, "the start of what was accepted", 0.02)


def _workers(pid: int) -> list[int]:
    found = []
    for one in processes.tree(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "qcluster" in " ".join(one.cmdline()):
                found.append(one.pid)
    return found
