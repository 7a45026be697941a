"""B1, B2, B3: a message is accepted over REST, beside a bare view with one insert."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
from psycopg import sql

from tests.bench import databases, installations, load, processes
from tests.bench.figures import (
    Line,
    Report,
    Round,
    Side,
    percentile,
    ratio_of_cpu,
    ratio_of_rates,
)
from tests.bench.installations import Place
from tests.bench.load import Caller

CONNECTIONS = 16
TEXT = "The report is ready; please check the second table before noon. " * 4
WATCHED = (
    "messaging_receipt",
    "cowork_outboxentry",
    "cowork_task",
    "timeline_stream",
    "timeline_event",
    "timeline_body",
)


Running = tuple[list[Caller], int]  # who calls, and the server's process


def _body(prefix: str, recipient: Callable[[int], str]) -> load.Body:
    def body(number: int) -> bytes:
        sent = {"bot": recipient(number), "message": TEXT, "message_id": f"{prefix}-{number}"}
        return json.dumps(sent).encode()

    return body


def our_callers(where: Place, made: Any) -> list[Caller]:
    """One connection each sender; its messages go round all recipients."""
    found = []
    for number in range(CONNECTIONS):
        secret = made["credentials"][f"s{number}-key"]

        def recipient(count: int, own: int = number) -> str:
            return f"r{(own + count) % CONNECTIONS}"

        found.append(
            Caller(
                where.port,
                "/api/v1/send_agent_message",
                {"Authorization": f"Bearer {secret}"},
                _body(f"bench-{number}", recipient),
            )
        )
    return found


def bare_callers(where: Place) -> list[Caller]:
    return [
        Caller(where.port, "/send", {}, _body(f"bare-{number}", lambda _count: "somebody"))
        for number in range(CONNECTIONS)
    ]


def measured(callers: list[Caller], numbers: Sequence[int], pid: int, status: int = 202) -> Round:
    """One round: so many requests on each connection."""
    cpu = processes.cpu_seconds(pid)
    began = time.monotonic()
    taken = load.call(callers, numbers, status=status)
    seconds = time.monotonic() - began
    return Round(len(taken), seconds, processes.cpu_seconds(pid) - cpu, taken)


def rounds(our: Running, bare: Running, *, each: int, count: int) -> tuple[Side, Side]:
    """The two sides in turns; who begins changes."""
    ours, theirs = Side("CoWork"), Side("bare view")
    for callers, pid in (our, bare):
        measured(callers, range(3), pid)  # warm, not counted
    for number in range(count):
        numbers = range((number + 2) * each, (number + 3) * each)
        sides = [(ours, our), (theirs, bare)]
        for side, (callers, pid) in sides if number % 2 else reversed(sides):
            side.rounds.append(measured(callers, numbers, pid))
    return ours, theirs


@contextmanager
def both(our_url: str = "", bare_url: str = "") -> Iterator[tuple[Place, Running, Running]]:
    """Both servers, and those who call them. Only the web server runs: nothing is delivered."""
    with ExitStack() as stack:
        where = stack.enter_context(installations.ours(our_url))
        bare = stack.enter_context(installations.reference(bare_url))
        made = installations.provision(where, installations.lab(CONNECTIONS, CONNECTIONS))
        our_pid = stack.enter_context(installations.up(where, "--role", "web"))
        bare_pid = stack.enter_context(installations.daphne(bare))
        yield where, (our_callers(where, made), our_pid), (bare_callers(bare), bare_pid)


def b1(server_url: str, *, quick: bool) -> list[Report]:
    """B1 on PostgreSQL, and B3: repeats of what was accepted."""
    each, count = (5, 3) if quick else (20, 5)
    report = Report("B1", "acceptance through REST on PostgreSQL")
    with (
        databases.database(server_url) as our_url,
        databases.database(server_url) as bare_url,
        both(our_url, bare_url) as (_where, our, bare),
    ):
        ours, theirs = rounds(our, bare, each=each, count=count)
        repeated = _repeats(our, our_url, ours, each=each, count=count)
    cpu = ratio_of_cpu(ours, theirs)
    report.lines = [
        Line("requests/s : bare view's", ratio_of_rates(ours, theirs), at_least=0.8),
        Line("server CPU : bare view's", cpu, at_most=1.25),
    ]
    report.notes = [ours.told, theirs.told]
    return [report, repeated]


def b2(_server_url: str, *, quick: bool) -> list[Report]:
    """The same on SQLite with `synchronous=FULL`."""
    each, count = (5, 3) if quick else (20, 5)
    report = Report("B2", "acceptance through REST on SQLite")
    with both() as (_where, our, bare):
        ours, theirs = rounds(our, bare, each=each, count=count)
    tail = percentile(ours.latencies, 0.99) / percentile(ours.latencies, 0.5)
    report.lines = [
        Line("requests/s : bare view's", ratio_of_rates(ours, theirs), at_least=0.75),
        Line("p99 : p50", tail, at_most=4),
    ]
    report.notes = [ours.told, theirs.told, f"CPU : bare view's {ratio_of_cpu(ours, theirs):.2f} ×"]
    return [report]


def _repeats(our: Running, url: str, fresh: Side, *, each: int, count: int) -> Report:
    """The messages of each round once more, and what that wrote."""
    callers, pid = our
    again = Side("repeats")
    before = _versions(url)
    for number in range(count):
        numbers = range((number + 2) * each, (number + 3) * each)
        again.rounds.append(measured(callers, numbers, pid, status=200))
    written = len(_versions(url) - before)
    units = sum(one.units for one in again.rounds)
    report = Report("B3", "repeating an accepted message")
    report.lines = [
        Line("requests/s : fresh ones", ratio_of_rates(again, fresh), at_least=1.0),
        Line("rows left in a new version, each", written / units, unit="rows", at_most=0),
    ]
    report.notes = [again.told]
    return report


def _versions(url: str) -> set[tuple[str, str, str]]:
    """Every version of every row: what is written leaves a new one, whatever it writes."""
    found: set[tuple[str, str, str]] = set()
    with psycopg.connect(url) as connection:
        for table in WATCHED:
            query = sql.SQL("SELECT ctid::text, xmin::text FROM {}").format(sql.Identifier(table))
            found |= {(table, place, writer) for place, writer in connection.execute(query)}
    return found
