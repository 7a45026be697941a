"""Waiting for a commit, of this process or of another one (SPEC §14.4).

A worker thread waits with `wait`, an event loop subscribes. What is heard is a hint to look at the
database, where the truth is: one hint may stand for many commits, or for none. The watch starts
with the first use in a process and is made anew in a process that was forked.
"""

import os
import threading
from collections.abc import Callable
from typing import Protocol

from django.db import connection

Callback = Callable[[], None]


class Watch(Protocol):
    """Hears of commits of other processes and tells them of ours."""

    def tell(self) -> None: ...

    def stop(self) -> None: ...


class Commits:
    """Everybody of one process who waits for commits."""

    def __init__(self) -> None:
        self._guard = threading.Condition()
        self._count = 0
        self._seen = threading.local()
        self._callbacks: list[Callback] = []
        self._watch: Watch | None = None

    def wait(self, timeout: float) -> bool:
        """Wait until something may have been committed since this thread's last call returned.

        A commit between a look at the database and the call is not missed: then it returns at
        once. False when the time is over.
        """
        self._start()
        with self._guard:
            seen = getattr(self._seen, "count", 0)
            is_heard = self._guard.wait_for(lambda: self._count > seen, timeout)
            self._seen.count = self._count
            return is_heard

    def subscribe(self, callback: Callback) -> Callback:
        """Have a function called after commits, in any thread; it must be quick and not raise.

        Returns the function that ends it.
        """
        with self._guard:
            self._callbacks.append(callback)
        self._start()

        def unsubscribe() -> None:
            with self._guard:
                self._callbacks.remove(callback)

        return unsubscribe

    def tell(self) -> None:
        """Say that this process has committed something."""
        if connection.vendor == "postgresql":  # the others hear of it from us alone
            self._start()
        if self._watch is not None:
            self._watch.tell()
        self._hear()

    def stop(self) -> None:
        """End the watch; the next use starts it again."""
        with self._guard:
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    def _hear(self) -> None:
        with self._guard:
            self._count += 1
            self._guard.notify_all()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def _start(self) -> None:
        if self._watch is None:
            with self._guard:
                if self._watch is None:
                    self._watch = _watch_of_database(self._hear)


class _NoWatch:
    """The watch of a database in memory, which no other process can see."""

    def tell(self) -> None:
        """Nobody else is there."""

    def stop(self) -> None:
        """Nothing runs."""


def _watch_of_database(hear: Callback) -> Watch:
    if connection.vendor == "postgresql":
        from timeline.notifications import NotificationWatch  # psycopg is not always installed

        return NotificationWatch(hear)
    if connection.is_in_memory_db():  # type: ignore[attr-defined]  # SQLite's
        return _NoWatch()
    from timeline.file_watch import FileWatch

    return FileWatch(str(connection.settings_dict["NAME"]), hear)


_of_this_process = Commits()
# A parent's connections must neither be used nor closed by its children.
_of_parents: list[Commits] = []


def _start_afresh() -> None:
    global _of_this_process
    _of_parents.append(_of_this_process)
    _of_this_process = Commits()


os.register_at_fork(after_in_child=_start_afresh)


def wait(timeout: float) -> bool:
    """See Commits.wait."""
    return _of_this_process.wait(timeout)


def subscribe(callback: Callback) -> Callback:
    """See Commits.subscribe."""
    return _of_this_process.subscribe(callback)


def tell() -> None:
    """See Commits.tell."""
    _of_this_process.tell()


def stop() -> None:
    """See Commits.stop."""
    _of_this_process.stop()
