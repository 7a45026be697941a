"""Hearing of commits in PostgreSQL: LISTEN, and a look at what is running every 250 ms.

One thread and one connection in a process do both ways: they tell of our commits, at most once
in 20 ms, because each NOTIFY makes commits wait for each other.
"""

import contextlib
import logging
import os
import selectors
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, Error, connections

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.25  # the fallback
TELL_EVERY = 0.02
RETRY_AFTER = 0.5


class NotificationWatch:
    """Hears of the commits in one database and tells of ours, in a thread of its own."""

    def __init__(self, hear: Callable[[], None]) -> None:
        self._hear = hear
        self._is_told = False
        self._stopped = threading.Event()
        self._woken, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="commits", daemon=True)
        self._thread.start()

    def tell(self) -> None:
        """Tell the other processes soon."""
        if not self._is_told:
            self._is_told = True
            self._wake()

    def stop(self) -> None:
        self._stopped.set()
        self._wake()
        self._thread.join()
        os.close(self._woken)
        os.close(self._waker)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it will wake
            os.write(self._waker, b".")

    def _run(self) -> None:
        while not self._stopped.is_set():
            # A connection of this thread, which other threads' requests never close.
            database = connections[DEFAULT_DB_ALIAS].copy()
            try:
                database.ensure_connection()
                self._watch(database.connection)
            except (psycopg.Error, Error):
                logger.warning("no word of commits; connecting again", exc_info=True)
                self._stopped.wait(RETRY_AFTER)
            finally:
                with contextlib.suppress(psycopg.Error, Error):
                    database.close()

    def _watch(self, database: "psycopg.Connection[Any]") -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(database.fileno(), selectors.EVENT_READ)
            waiting.register(self._woken, selectors.EVENT_READ)
            heard = _Heard(database)
            # Nothing of what a NOTIFY commits has to survive anything.
            database.execute("SET synchronous_commit TO off")
            database.execute("LISTEN cowork_commits")
            snapshot = None
            look_at = may_tell_at = 0.0
            while not self._stopped.is_set():
                now = time.monotonic()
                if self._is_told and now >= may_tell_at:
                    self._is_told = False
                    may_tell_at = now + TELL_EVERY
                    database.execute("NOTIFY cowork_commits")
                if now >= look_at:
                    look_at = now + LOOK_EVERY
                    before, snapshot = snapshot, _snapshot(database)
                    if snapshot != before:  # the first time, too: something may be missed
                        heard.is_new = True
                if heard.take():
                    self._hear()
                until = min(look_at, may_tell_at) if self._is_told else look_at
                waiting.select(max(0.0, until - time.monotonic()))
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)


class _Heard:
    """What other sessions have said on the channel."""

    def __init__(self, database: "psycopg.Connection[Any]") -> None:
        self._database = database
        self._own = database.info.backend_pid
        self.is_new = False
        # Called for what comes in while a statement of ours runs.
        database.add_notify_handler(self._note)

    def _note(self, said: psycopg.Notify) -> None:
        self.is_new = self.is_new or said.pid != self._own

    def take(self) -> bool:
        wire = self._database.pgconn
        wire.consume_input()
        while (said := wire.notifies()) is not None:
            self.is_new = self.is_new or said.be_pid != self._own
        is_new, self.is_new = self.is_new, False
        return is_new


def _snapshot(database: "psycopg.Connection[Any]") -> str:
    """Which transactions are over: another text after every commit of somebody who wrote."""
    found = database.execute("SELECT pg_current_snapshot()::text").fetchone()
    return str(found)
