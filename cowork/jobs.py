"""The django-q2 jobs. A job is a hint that may be lost or doubled; the tables say what is due."""

import logging
import os
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django_q.models import OrmQ, Task
from django_q.tasks import async_task

from cowork import boot, holding, sweeps
from timeline.clock import Clock, system_clock
from timeline.refusals import DatabaseBusy

logger = logging.getLogger(__name__)

FAILURES_ARE_KEPT = timedelta(days=7)
QUEUES_OF_THE_DEAD_ARE_KEPT = timedelta(days=1)
RETENTION_EVERY = timedelta(hours=1)
DAY = timedelta(days=1)
RECOVERY_LEASE = timedelta(seconds=15)


def enqueue_drain(number: int) -> None:
    async_task("cowork.worker.drain.run", number)


def enqueue_sweep() -> None:
    async_task("cowork.jobs.sweep")


def sweep() -> None:
    """Look for what was left undone, once in a period for the whole installation."""
    # An owner for every sweep: within the period nobody sweeps twice, not the same process either.
    owner = f"{boot.current.name}:sweep:{os.urandom(6).hex()}"
    # A little less than the period, as the next one comes a little early at times.
    lease = settings.COWORK_SWEEP * 0.8
    if not holding.hold("sweep", owner=owner, lease=lease, clock=system_clock):
        return
    _call_all(sweeps.SWEEPS, clock=system_clock)
    if holding.hold("retention", owner=owner, lease=RETENTION_EVERY, clock=system_clock):
        retain(clock=system_clock)
    look_daily(owner=owner, clock=system_clock)


def recover(*, owner: str, clock: Clock) -> bool:
    """Repair what a crash left, before anything drains; False when somebody else does so now."""
    if not holding.hold("recovery", owner=owner, lease=RECOVERY_LEASE, clock=clock):
        return False
    for repair in sweeps.AT_START:
        repair(clock=clock)
    holding.offer("recovery", owner=owner, clock=clock)
    return True


def retain(*, clock: Clock) -> None:
    """Delete what django-q2 keeps for ever: failed results, and queues of dead clusters."""
    now = clock.now()
    Task.objects.filter(stopped__lt=now - FAILURES_ARE_KEPT).delete()
    OrmQ.objects.filter(lock__lt=now - QUEUES_OF_THE_DEAD_ARE_KEPT).delete()


def look_daily(*, owner: str, clock: Clock) -> None:
    """What is looked at once a day; at the next sweep again when that is not done."""
    if not holding.hold("daily", owner=owner, lease=DAY, clock=clock):
        return
    is_done = True
    for look in sweeps.DAILY:
        try:
            is_done = look(clock=clock) and is_done
        except (DatabaseBusy, DatabaseError) as trouble:
            logger.warning("a daily look did not get through", exc_info=trouble)
            is_done = False
    if not is_done:
        holding.offer("daily", owner=owner, clock=clock)


def _call_all(registered: list[sweeps.Sweep], *, clock: Clock) -> None:
    """Call each, whatever became of the one before."""
    for look in registered:
        try:
            look(clock=clock)
        except (DatabaseBusy, DatabaseError) as trouble:
            logger.warning("a sweep did not get through", exc_info=trouble)
