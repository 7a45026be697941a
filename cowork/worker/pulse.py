"""The pulse of a drain: it beats for the supervisor, and sees to the limit of what it runs.

A handler can't be interrupted safely, so one that is over its limit is counted as failed from
here, where it can store nothing any more; if it does not come back then, its process ends.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, connections

from cowork import boot, draining, runs
from cowork.models import OutboxEntry
from timeline.clock import Clock
from timeline.refusals import DatabaseBusy

logger = logging.getLogger(__name__)

BEAT_EVERY = 0.4
GRACE = 2.0  # what a handler over its limit has left to come back
GOODBYE = 0x80  # added to a drain's number: it has ended, as it was asked to


@dataclass(slots=True)
class Run:
    """What runs now, since when, and what was done about it."""

    entry: OutboxEntry
    began: float
    renewed: float
    is_over: bool = False


class Pulse:
    """Around a drain: beats in a thread of its own while the drain lives."""

    def __init__(self, number: int, *, clock: Clock) -> None:
        self._number = number
        self._clock = clock
        self._run: Run | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)
        self._keeper: threading.Thread | None = None

    def __enter__(self) -> "Pulse":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    @contextlib.contextmanager
    def watch(self, entry: OutboxEntry) -> Iterator[None]:
        """Be around a run of an entry."""
        now = time.monotonic()
        self._run = Run(entry, began=now, renewed=now)
        try:
            yield
        finally:
            self._run = None

    def goodbye(self) -> None:
        """Tell the supervisor that this drain has ended and that none follows."""
        tell(self._number | GOODBYE)

    def _beat(self) -> None:
        while not self._is_over.wait(BEAT_EVERY):
            tell(self._number)
            run = self._run
            if run is not None:
                self._look_after(run)

    def _look_after(self, run: Run) -> None:
        now = time.monotonic()
        limit = settings.COWORK_HANDLER_LIMIT.total_seconds()
        lease = settings.COWORK_OUTBOX_LEASE.total_seconds()
        if now - run.began > limit + GRACE:
            logger.error("ended this process: a handler did not come back: %s", run.entry)
            os._exit(os.EX_SOFTWARE)
        if self._keeper is not None and self._keeper.is_alive():
            return
        if now - run.began > limit and not run.is_over:
            run.is_over = True
            self._in_a_thread(run, f"HandlerTooSlow: it ran longer than {limit:g} s")
        elif now - run.renewed > lease / 3 and not run.is_over:
            run.renewed = now
            self._in_a_thread(run, None)

    def _in_a_thread(self, run: Run, error: str | None) -> None:
        """Renew or fail the run beside the beats, as the database may let it wait."""
        self._keeper = threading.Thread(target=self._keep, args=(run, error), daemon=True)
        self._keeper.start()

    def _keep(self, run: Run, error: str | None) -> None:
        try:
            if error is None:
                draining.renew(run.entry, clock=self._clock)
            else:
                draining.fail(run.entry, error, clock=self._clock)
        except runs.Overtaken:
            logger.info("overtaken: %s", run.entry)
        except (DatabaseBusy, DatabaseError) as trouble:
            logger.warning("could not look after %s", run.entry, exc_info=trouble)
        finally:
            connections.close_all()


def tell(word: int) -> None:
    """Send one byte to the supervisor, if there is one."""
    if boot.current.beat_fd >= 0:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(boot.current.beat_fd, bytes([word]))
