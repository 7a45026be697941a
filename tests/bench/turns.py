"""B4: turns of scripts, beside no-op tasks of django-q2's database queue."""

import time
from collections.abc import Callable

import psycopg
from psycopg import sql

from tests.bench import databases, installations, processes
from tests.bench.figures import Line, Report, Round, Side, ratio_of_rates
from tests.bench.installations import Place

EACH = 10
LOOK = 0.05
PATIENCE = 90.0
DELIVERED = sql.SQL(
    "SELECT count(*) FROM messaging_receipt WHERE status = 'delivered' AND NOT is_automatic"
)
LEFT = sql.SQL("SELECT -count(*) FROM django_q_ormq")


def b4(server_url: str, *, quick: bool) -> list[Report]:
    recipients, rounds, tasks, by_default = (10, 1, 500, 40) if quick else (40, 3, 1500, 60)
    messages, batches = Side("messages, a turn each"), Side("messages, batch_inputs")
    follow_ups = Side("follow-ups, a turn each")
    tuned, stock = Side("django-q2 tuned"), Side("django-q2 as it comes")
    for _round in range(rounds):
        for how, side in (("agents", messages), ("batch", batches), ("follow_ups", follow_ups)):
            side.rounds.append(_turns(server_url, how, recipients))
        tuned.rounds.append(_tasks(server_url, tasks, is_tuned=True))
        stock.rounds.append(_tasks(server_url, by_default, is_tuned=False))
    report = Report("B4", "turns through the script runtime on PostgreSQL, two drains")
    report.lines = [
        Line("messages/s : tuned", ratio_of_rates(messages, tuned), at_least=2),
        Line("messages/s : as it comes", ratio_of_rates(messages, stock), at_least=20),
        Line("messages/s with batch_inputs : tuned", ratio_of_rates(batches, tuned), at_least=10),
        Line("follow-ups/s : tuned", ratio_of_rates(follow_ups, tuned)),
    ]
    sides = (messages, batches, follow_ups, tuned, stock)
    report.notes = [
        "each message to a script ends in an automatic reply, which is queued too",
        *(side.told for side in sides),
    ]
    return [report]


def _turns(server_url: str, how: str, recipients: int) -> Round:
    """Fill the queues first; then start a worker, and time from the first turn to the last."""
    with databases.database(server_url) as url, installations.ours(url) as where:
        installations.provision(where, installations.lab(8, recipients, rules=[]))
        where.run("-m", "tests.bench.inside", "fill", how, str(recipients), str(EACH))
        with (
            psycopg.connect(url, autocommit=True) as connection,
            installations.up(where, "--role", "worker", "--workers", "2") as pid,
        ):
            found = _timed(connection, DELIVERED, pid, recipients * EACH, where)
        told = where.run("-m", "tests.bench.inside", "counts")
        if '"lost": 0, "twice": 0, "gaps": 0' not in told:
            raise RuntimeError(told)
        return found


def _tasks(server_url: str, count: int, *, is_tuned: bool) -> Round:
    with databases.database(server_url) as url, installations.reference(url) as where:
        where.run("-m", "django", "migrate", "--run-syncdb", "-v0")
        where.run("-m", "tests.bench.references.queue", "fill", str(count))
        with (
            psycopg.connect(url, autocommit=True) as connection,
            installations.qcluster(where, tuned=is_tuned) as pid,
        ):
            return _timed(connection, LEFT, pid, count, where)


def _timed(
    connection: "psycopg.Connection[tuple[int]]",
    query: sql.SQL,
    pid: int,
    count: int,
    where: Place,
) -> Round:
    """From the first look that finds something done to the one that finds all of it."""
    before = _number(connection, query)

    def done() -> int:
        return _number(connection, query) - before

    _wait(done, 1, where)
    first, began, cpu = done(), time.monotonic(), processes.cpu_seconds(pid)
    _wait(done, count, where)
    seconds = time.monotonic() - began
    return Round(count - first, seconds, processes.cpu_seconds(pid) - cpu)


def _wait(done: Callable[[], int], count: int, where: Place) -> None:
    try:
        processes.until(lambda: done() >= count, PATIENCE, "the work", LOOK)
    except TimeoutError as late:
        late.add_note(where.log.read_text()[-2000:])
        raise


def _number(connection: "psycopg.Connection[tuple[int]]", query: sql.SQL) -> int:
    [found] = connection.execute(query)
    return found[0]
