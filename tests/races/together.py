"""Several calls at the same moment: real threads, a connection each, real commits."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection, connections

from timeline.refusals import Refusal

PATIENCE = 20.0


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returned, or the refusal that it met; anything else that rises, rises."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            gate.wait(PATIENCE)
            return call()
        except Refusal as refusal:
            return refusal
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        running = [pool.submit(run, call) for call in calls]
        return [one.result() for one in running]


def kinds(outcomes: Iterable[Any]) -> Counter[str]:
    """How many outcomes there are of each: the code of a refusal, else the type of the answer."""
    return Counter(
        outcome.code if isinstance(outcome, Refusal) else type(outcome).__name__
        for outcome in outcomes
    )
