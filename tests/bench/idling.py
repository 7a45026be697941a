"""B10: what the embedded server takes while nothing happens, and how its memory grows."""

import contextlib
import json
import sqlite3
import time

from tests.bench import installations, load, processes
from tests.bench.figures import Line, Report
from tests.bench.installations import Place
from tests.bench.load import Caller

SETTLE = 5.0
LOOK = 0.02
DELIVERED = "SELECT count(*) FROM messaging_receipt WHERE status = 'delivered' AND NOT is_automatic"
SENDERS = 8


def b10(_server_url: str, *, quick: bool) -> list[Report]:
    seconds, messages = (8.0, 100) if quick else (25.0, 800)
    report = Report("B10", "embedded, idle, SQLite")
    with installations.ours() as where:
        made = installations.provision(where, installations.lab(SENDERS, SENDERS, rules=[]))
        with installations.up(where) as pid:
            time.sleep(SETTLE)
            cpu = processes.cpu_seconds(pid)
            commits = _commits(where, seconds)
            used = (processes.cpu_seconds(pid) - cpu) / seconds * 100
            count = len(processes.tree(pid))
            fresh = processes.memory(pid)
            callers = [
                Caller(
                    where.port,
                    "/api/v1/send_agent_message",
                    {"Authorization": f"Bearer {made['credentials'][f's{number}-key']}"},
                    lambda number, own=number: json.dumps(  # type: ignore[misc]
                        {"bot": f"r{own}", "message": "On.", "message_id": f"b10-{number}"}
                    ).encode(),
                )
                for number in range(SENDERS)
            ]
            _send(where, callers, range(messages // 4))
            some = processes.memory(pid)
            _send(where, callers, range(messages // 4, messages))
            many = processes.memory(pid)
    report.lines = [
        Line("CPU", used, "% of a core", at_most=1),
        Line("commits", commits / seconds * 60, "a minute", at_most=0),
        Line(f"memory of {count} processes", many, "MB", at_most=260),
        Line(f"more after {messages * 6:,} messages", many - some, "MB", at_most=5),
    ]
    grown = (
        f"{fresh:.0f} MB fresh, {some:.0f} after {messages * 2:,} messages, {many:.0f} at the end"
    )
    report.notes = [
        f"memory: {grown}",
        f"looked for {seconds:.0f} s; a drain is followed by the next every 20 s",
    ]
    return [report]


def _commits(where: Place, seconds: float) -> int:
    """How often the file's change counter moves."""
    ends_at = time.monotonic() + seconds
    count = 0
    with contextlib.closing(sqlite3.connect(f"file:{where.sqlite}?mode=ro", uri=True)) as file:
        [[before]] = file.execute("PRAGMA data_version")
        while time.monotonic() < ends_at:
            time.sleep(LOOK)
            [[now]] = file.execute("PRAGMA data_version")
            count += now != before
            before = now
    return count


def _send(where: Place, callers: list[Caller], numbers: range) -> None:
    """Send, and wait until all of it is delivered."""
    load.call(callers, numbers, status=202)
    wanted = numbers.stop * len(callers)

    def is_so() -> bool:
        with contextlib.closing(sqlite3.connect(f"file:{where.sqlite}?mode=ro", uri=True)) as rows:
            [[number]] = rows.execute(DELIVERED)
        return bool(number >= wanted)

    processes.until(is_so, 120, "the delivery", 0.2)
