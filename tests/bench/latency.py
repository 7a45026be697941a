"""B6: from acceptance to the start of the turn while all is idle, beside django-q2 as it comes."""

import json
import random
import statistics
import time
from contextlib import ExitStack
from typing import Any

from tests.bench import databases, installations, load
from tests.bench.figures import Line, Report, percentile, percentiles
from tests.bench.installations import Place
from tests.bench.load import Caller

SENDERS = 4
SETTLE = 3.0


def b6(server_url: str, *, quick: bool) -> list[Report]:
    rounds, each = (2, 10) if quick else (3, 25)
    with ExitStack() as stack:
        embedded = _embedded(stack)
        scaled_out = _scaled_out(stack, server_url)
        queue = _queue(stack, server_url)
        time.sleep(SETTLE)
        for asked in (embedded, scaled_out):
            _ask(asked, range(3))  # the first of a connection are slower; not counted
        began = time.time()
        for number in range(rounds):
            numbers = range(10 + number * each, 10 + (number + 1) * each)
            _ask(embedded, numbers)
            _enqueue(queue, each)
            _ask(scaled_out, numbers)
        time.sleep(1)
        near, far = _latencies(embedded[0], began), _latencies(scaled_out[0], began)
        stock = [float(line) for line in (queue.folder / "noted").read_text().split()]
    far_p95 = percentile(far, 0.95)
    report = Report("B6", "accepted → turn started, idle")
    report.lines = [
        Line("embedded (SQLite), p50", statistics.median(near) * 1000, "ms", at_most=10),
        Line("embedded (SQLite), p95", percentile(near, 0.95) * 1000, "ms", at_most=25),
        Line("scaled out (PostgreSQL), p95", far_p95 * 1000, "ms", at_most=50),
        Line("scaled out p95 : django-q2's", far_p95 / percentile(stock, 0.95), at_most=0.25),
    ]
    report.notes = [
        f"embedded: {percentiles(near)}",
        f"scaled out: {percentiles(far)}",
        f"django-q2 as it comes, enqueue → start: {percentiles(stock)}",
    ]
    return [report]


Asked = tuple[Place, list[Caller]]


def _embedded(stack: ExitStack) -> Asked:
    where = stack.enter_context(installations.ours())
    made = installations.provision(where, installations.lab(SENDERS, SENDERS, rules=[]))
    stack.enter_context(installations.up(where))
    return where, _callers(where, made)


def _scaled_out(stack: ExitStack, server_url: str) -> Asked:
    url = stack.enter_context(databases.database(server_url))
    where = stack.enter_context(installations.ours(url))
    made = installations.provision(where, installations.lab(SENDERS, SENDERS, rules=[]))
    stack.enter_context(installations.up(where, "--role", "web"))
    stack.enter_context(installations.up(where, "--role", "worker"))
    return where, _callers(where, made)


def _queue(stack: ExitStack, server_url: str) -> Place:
    url = stack.enter_context(databases.database(server_url))
    where = stack.enter_context(installations.reference(url))
    where.run("-m", "django", "migrate", "--run-syncdb", "-v0")
    stack.enter_context(installations.qcluster(where, tuned=False))
    return where


def _callers(where: Place, made: Any) -> list[Caller]:
    return [
        Caller(
            where.port,
            "/api/v1/send_agent_message",
            {"Authorization": f"Bearer {made['credentials'][f's{number}-key']}"},
            lambda count, own=number: json.dumps(  # type: ignore[misc]
                {"bot": f"r{own}", "message": "Now.", "message_id": f"b6-{own}-{count}"}
            ).encode(),
        )
        for number in range(SENDERS)
    ]


def _ask(asked: Asked, numbers: range) -> None:
    """One message after the other, at times that nobody can be in step with."""
    for number in numbers:
        time.sleep(random.uniform(0.1, 0.25))
        load.call([asked[1][number % SENDERS]], [number], status=202)


def _enqueue(where: Place, count: int) -> None:
    gap = str(random.uniform(0.15, 0.2))
    file = str(where.folder / "noted")
    where.run("-m", "tests.bench.references.queue", "ask", str(count), gap, file)
    time.sleep(0.5)


def _latencies(where: Place, since: float) -> list[float]:
    found: list[float] = json.loads(where.run("-m", "tests.bench.inside", "latencies", repr(since)))
    return found
