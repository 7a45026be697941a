"""One writer at a time within a process on SQLite.

SQLite has one write lock and no queue before it: threads that wait for it poll, and some of them
starve. Within the process they wait in a line instead; between processes the busy timeout stands.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from timeline.refusals import DatabaseBusy

PATIENCE = 5.0  # seconds; the busy timeout of SPEC §16.2


class Line:
    """A lock that is handed over in the order of arrival."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._is_taken = False

    def enter(self, timeout: float) -> bool:
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return True
            mine = threading.Event()
            self._waiting.append(mine)
        if mine.wait(timeout):
            return True
        with self._guard:
            if mine.is_set():  # handed over at the last moment
                return True
            self._waiting.remove(mine)
            return False

    def leave(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_taken = False


_line = Line()


@contextmanager
def turn() -> Iterator[None]:
    """Hold the process's turn to write. Raises DatabaseBusy when it does not come in time."""
    if connection.vendor != "sqlite":
        yield
        return
    if not _line.enter(PATIENCE):
        raise DatabaseBusy
    try:
        yield
    finally:
        _line.leave()
