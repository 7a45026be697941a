"""A drain: runs what is due, then sleeps until something is, for a while (SPEC §8.8)."""

import logging
import os
import time
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from cowork import boot, draining, holding, jobs, slots
from cowork.worker import stop
from cowork.worker.pulse import Pulse
from timeline import commits
from timeline.clock import Clock, system_clock
from timeline.refusals import DatabaseBusy

logger = logging.getLogger(__name__)

NAP = 0.5  # the longest sleep in which nobody is heard
LOOK_EVERY = 5.0  # a look at the table without any reason
HANDOVER = 7.0  # how long before and after its time a drain and its successor know each other
SLOT_PREFIX = "drain:"


class Drain:
    """One of the drains of this cluster, as far as this job carries it."""

    def __init__(self, number: int, *, clock: Clock) -> None:
        self._number = number
        self._clock = clock
        self._owner = f"{boot.current.name}:{number}:{os.getpid()}:{time.monotonic_ns()}"
        self._slot = f"{SLOT_PREFIX}{boot.current.name}:{number}"
        self._life = settings.COWORK_DRAIN_LIFE.total_seconds()
        self._sweep_at = time.monotonic()
        self._had_trouble = False

    def run(self) -> None:
        """Live for a while; a second drain of the same number ends at once."""
        if not self._take_over():
            logger.info("drain %d is there already", self._number)
            return
        ends_at = time.monotonic() + self._life
        with Pulse(self._number, clock=self._clock) as pulse:
            while time.monotonic() < ends_at and not stop.is_asked():
                self._sweep()
                self._work(pulse, until=ends_at)
            if not stop.is_asked():
                self._hand_over(pulse)
            if stop.is_asked():
                pulse.goodbye()

    def _take_over(self) -> bool:
        """Take the slot, waiting for the drain before this one to see that it is over."""
        ends_at = time.monotonic() + HANDOVER
        lease = settings.COWORK_DRAIN_LIFE + timedelta(seconds=2 * HANDOVER)
        while not holding.hold(self._slot, owner=self._owner, lease=lease, clock=self._clock):
            if time.monotonic() > ends_at or stop.is_asked():
                return False
            commits.wait(NAP)
        return True

    def _hand_over(self, pulse: Pulse) -> None:
        """Go on until the next drain has come, for it may take its time."""
        jobs.enqueue_drain(self._number)
        holding.offer(self._slot, owner=self._owner, clock=self._clock)
        ends_at = time.monotonic() + HANDOVER
        while slots.is_held(self._slot, owner=self._owner) and not stop.is_asked():
            if time.monotonic() > ends_at:
                logger.warning("no drain follows drain %d", self._number)
                return
            self._work(pulse, until=time.monotonic() + NAP)

    def _work(self, pulse: Pulse, *, until: float) -> None:
        """Run what one look finds, or sleep until something may be due."""
        try:
            if self._had_trouble:
                draining.void_leases(self._owner, clock=self._clock)
                self._had_trouble = False
            looked_at = self._clock.now()
            if draining.drain_some(
                owner=self._owner,
                clock=self._clock,
                watch=pulse.watch,
                is_over=lambda: stop.is_asked() or time.monotonic() > until,
            ):
                return
            due_at = draining.next_due(self._clock, after=looked_at)
            seconds = LOOK_EVERY if due_at is None else (due_at - looked_at).total_seconds()
        except (DatabaseBusy, DatabaseError, InterfaceError) as trouble:
            # What this drain had taken it has lost sight of; it is taken over when that is back.
            logger.warning("the database is in trouble", exc_info=trouble)
            self._had_trouble = True
            connection.close()
            seconds = NAP
        self._sleep(min(time.monotonic() + seconds, until))

    def _sleep(self, until: float) -> None:
        """Sleep until a time, or until something is committed or asked for."""
        while not stop.is_asked() and (left := min(until, self._sweep_at) - time.monotonic()) > 0:
            if commits.wait(min(left, NAP)):
                return

    def _sweep(self) -> None:
        """The first drain has the sweeps made: a job, as they may take longer."""
        if time.monotonic() < self._sweep_at:
            return
        self._sweep_at = time.monotonic() + settings.COWORK_SWEEP.total_seconds()
        if self._number == 0:
            jobs.enqueue_sweep()


def run(number: int) -> None:
    """The job."""
    Drain(number, clock=system_clock).run()
