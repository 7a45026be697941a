"""Threads in which coroutines look at the database: few, and each keeps its connection."""

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import close_old_connections, connections

Found = TypeVar("Found")


class Desk:
    """Where looks wait in line for one of a few seats."""

    def __init__(self, name: str, *, seats: int) -> None:
        self._seats = seats
        self._threads = ThreadPoolExecutor(seats, thread_name_prefix=name)

    async def look(self, function: Callable[[], Found]) -> Found:
        """Run a function that only reads, and return what it found."""
        running = asyncio.get_running_loop()
        return await running.run_in_executor(self._threads, functools.partial(_seated, function))

    def clear(self) -> None:
        """Close the connection of every seat; the next look opens it again."""
        everybody = threading.Barrier(self._seats)
        leaving = [self._threads.submit(_leave, everybody) for _ in range(self._seats)]
        for seat in leaving:
            seat.result()


def _seated(function: Callable[[], Found]) -> Found:
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


def _leave(everybody: threading.Barrier) -> None:
    everybody.wait(timeout=30)
    connections.close_all()


# The pump's looks never wait behind those of a socket that catches up.
PUMP = Desk("pump", seats=1)
SOCKETS = Desk("sockets", seats=2)


def clear() -> None:
    """Close the connections of all seats."""
    for desk in (PUMP, SOCKETS):
        desk.clear()
