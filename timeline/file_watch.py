"""Hearing of commits in SQLite: the file's change counter, looked at when the file is written.

`PRAGMA data_version` on a connection of its own changes with every commit of any other connection.
inotify says when to look; where it is missing, the look is repeated every 50 ms.
"""

import contextlib
import ctypes
import logging
import os
import select
import sqlite3
import struct
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.25  # the fallback
POLL_EVERY = 0.05  # without inotify
RETRY_AFTER = 0.5
# Pages are written before the commit is seen: look at once, then again for some milliseconds.
SETTLE = 0.001
LOOK_AGAIN_AFTER = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)

_IN_MODIFY, _IN_CREATE = 0x2, 0x100
_EVENT = struct.Struct("iIII")


class FileWatch:
    """Hears of the commits in one database file, in a thread of its own."""

    def __init__(self, path: str, hear: Callable[[], None]) -> None:
        self._path = Path(path)
        self._hear = hear
        self._guard = threading.Lock()
        self._counter: sqlite3.Connection | None = None
        self._version: int | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commits", daemon=True)
        self._thread.start()

    def tell(self) -> None:
        """Take our own commit as heard. Other processes see it in the file."""
        with contextlib.suppress(sqlite3.Error):  # the thread meets the same error and heals it
            self._is_changed()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with _Writes(self._path) as writes, closing(self._open()) as counter:
                    self._watch(counter, writes)
            except (sqlite3.Error, OSError):
                logger.warning("the database file can't be watched; trying again", exc_info=True)
                self._stopped.wait(RETRY_AFTER)

    def _open(self) -> sqlite3.Connection:
        address = f"{self._path.resolve().as_uri()}?mode=rw"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    def _watch(self, counter: sqlite3.Connection, writes: "_Writes") -> None:
        with self._guard:
            self._counter, self._version = counter, None
        try:
            again: list[float] = []
            while not self._stopped.is_set():
                if self._is_changed():  # the first look always is one: something may be missed
                    self._hear()
                if writes.wait(again.pop() if again else LOOK_EVERY):
                    time.sleep(SETTLE)
                    again = list(reversed(LOOK_AGAIN_AFTER))
        finally:
            with self._guard:
                self._counter = None

    def _is_changed(self) -> bool:
        with self._guard:
            if self._counter is None:
                return False
            before = self._version
            [self._version] = self._counter.execute("PRAGMA data_version").fetchone()
            return self._version != before


class _Writes:
    """Waits until a database file or its log is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fsencode(path.name)
        self._fd = -1

    def __enter__(self) -> Self:
        libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(libc, "inotify_init1"):
            self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd >= 0:
            folder = os.fsencode(self._path.resolve().parent)
            if libc.inotify_add_watch(self._fd, folder, _IN_MODIFY | _IN_CREATE) < 0:
                self._close()
        if self._fd < 0:
            logger.warning("inotify is missing; the database file is looked at every 50 ms")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def wait(self, timeout: float) -> bool:
        """Whether the file was written before the time was over."""
        if self._fd < 0:
            time.sleep(min(timeout, POLL_EVERY))
            return False
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            if poll.poll(left * 1000) and self._is_ours(os.read(self._fd, 65536)):
                return True
        return False

    def _is_ours(self, events: bytes) -> bool:
        at = 0
        while at < len(events):
            _, _, _, length = _EVENT.unpack_from(events, at)
            at += _EVENT.size
            if events[at : at + length].rstrip(b"\0").startswith(self._name):
                return True
            at += length
        return False
