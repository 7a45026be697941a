"""B7: from a commit in another process to the last of many sockets, beside two ways of Channels."""

import asyncio
import json
import re
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from tests.bench import installations, processes
from tests.bench.figures import Line, Report, ratio
from tests.bench.installations import REFERENCES, Place
from tests.bench.socket_clients import Client, Ears, connect

GAP = 0.2
LOOK = 0.05
PATIENCE = 15.0
TOLD = rb"^(\S+ \S+)$"  # a reference's frame: number, and time of sending


def b7(_server_url: str, *, quick: bool) -> list[Report]:
    """Without a database server: the file's change counter is what the product hears of."""
    sizes, rounds, each = ((100, 300), 3, 4) if quick else ((100, 1000), 3, 10)
    with ExitStack() as stack:
        where = stack.enter_context(installations.ours())
        made = installations.provision(where, installations.lab(1, 1))
        stack.enter_context(installations.up(where))
        group = stack.enter_context(installations.reference())
        stack.enter_context(installations.daphne(group))
        limit = stack.enter_context(installations.reference())
        command = ("-m", f"{REFERENCES}.broadcast", str(limit.port))
        stack.enter_context(
            processes.running(*command, environment=limit.environment, log=limit.log)
        )
        processes.until(lambda: processes.listens(limit.port), processes.READY, "broadcast")
        report = Report("B7", "commit in another process → the last socket")
        for size in sizes:
            found = asyncio.run(_of_size(where, made, group, limit, size, rounds, each))
            _tell(report, size, *found)
    return [report]


def _tell(
    report: Report, size: int, ours: list[float], group: list[float], limit: list[float]
) -> None:
    times = 6 if size == 100 else 4
    report.lines += [
        Line(f"{size} sockets : group_send", ratio(ours, group), at_most=0.25),
        Line(f"{size} sockets : broadcast", ratio(ours, limit), at_most=times),
    ]
    medians = [f"{statistics.median(values) * 1000:.1f}" for values in (ours, group, limit)]
    named = zip(("CoWork", "group_send", "broadcast"), medians, strict=True)
    report.notes.append(f"{size} sockets: " + ", ".join(f"{name} {ms} ms" for name, ms in named))


async def _of_size(
    where: Place, made: Any, group: Place, limit: Place, size: int, rounds: int, each: int
) -> tuple[list[float], list[float], list[float]]:
    """The medians of each round, of the three in turns."""
    task = made["conversations"][1]["task_id"]
    bearer = {"Authorization": f"Bearer {made['credentials']['ops']}"}
    hears = [Ears(rb'"seq":(\d+)'), Ears(TOLD), Ears(TOLD)]
    ours = await connect(where.port, f"/ws/tasks/{task}/", size, hears[0], bearer)
    members = await connect(group.port, "/ws", size, hears[1])
    heard = await connect(limit.port, "/", size, hears[2])
    await asyncio.sleep(1)
    found: tuple[list[float], list[float], list[float]] = ([], [], [])
    for number in range(rounds):
        found[0].append(await _appended(where, task, each, hears[0], size))
        for place, clients in ((1, members), (2, heard)):
            found[place].append(await _said(clients, number, each, hears[place], size))
    for client in [*ours, *members, *heard]:
        client.close()
    await asyncio.sleep(1)
    return found


async def _appended(where: Place, task: str, each: int, ears: Ears, size: int) -> float:
    """Events that another process commits."""
    command = ("-m", "tests.bench.inside", "append", task, str(each), str(GAP))
    printed = await asyncio.to_thread(where.run, *command)
    committed = {str(seq): at for seq, at in json.loads(printed)}
    await _all_have(ears, list(committed), size)
    return float(statistics.median(ears.last_at[seq] - at for seq, at in committed.items()))


async def _said(clients: Sequence[Client], number: int, each: int, ears: Ears, size: int) -> float:
    """Texts that one client sends to all."""
    before = set(ears.counts)
    for count in range(each):
        await asyncio.sleep(GAP)
        clients[0].say(f"{number}-{count}")
    await _until(lambda: len(set(ears.counts) - before) == each)
    keys = list(set(ears.counts) - before)
    await _all_have(ears, keys, size)
    sent = {key: float(re.split(r"\s", key)[1]) for key in keys}
    return statistics.median(ears.last_at[key] - at for key, at in sent.items())


async def _all_have(ears: Ears, keys: list[str], size: int) -> None:
    await _until(lambda: all(ears.counts[key] == size for key in keys))


async def _until(question: Callable[[], bool]) -> None:
    """Look now and then, as the sockets only note what they hear."""
    for _look in range(int(PATIENCE / LOOK)):
        if question():
            return
        await asyncio.sleep(LOOK)
    raise TimeoutError("not every socket heard it")
