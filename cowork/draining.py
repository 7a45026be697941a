"""The drain: takes what is due from the outbox, runs it and completes it (SPEC §8).

Next on the path of a message: the handler, `messaging/wakes.py`.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from cowork import runs
from cowork.kinds import KINDS
from cowork.models import OutboxEntry
from timeline import crash
from timeline.clock import Clock
from timeline.refusals import DatabaseBusy
from timeline.transactions import action

logger = logging.getLogger(__name__)

# What is around a run from its take to its end: renews its lease, sees to its limit.
Watch = Callable[[OutboxEntry], AbstractContextManager[object]]
BUSY_DELAY = timedelta(seconds=1)
POISON = "every process that ran it died"


class HandlerTooSlow(Exception):
    """The handler ran longer than its limit, so nothing that it did is stored."""


def drain_one(*, owner: str, clock: Clock, watch: Watch = nullcontext) -> bool:
    """Take one entry that is due, run it and complete it; False when none is due."""
    return bool(drain_some(owner=owner, clock=clock, watch=watch, most=1))


def drain_some(
    *,
    owner: str,
    clock: Clock,
    watch: Watch = nullcontext,
    most: int = runs.WINDOW,
    is_over: Callable[[], bool] = lambda: False,
) -> int:
    """The same for as many as one look finds, each of another target; how many runs that were."""
    count = 0
    for entry in runs.takeable(clock.now()):
        if _take_or_pass(entry, owner=owner, clock=clock):
            _run_to_the_end(entry, clock=clock, watch=watch)
            count += 1
        if count >= most or is_over():
            break
    return count


def next_due(clock: Clock, *, after: datetime | None = None) -> datetime | None:
    """When something becomes due, or a lease runs out, after now or after a moment."""
    return runs.next_due(after=after or clock.now())


def drain(*, owner: str, clock: Clock, watch: Watch = nullcontext) -> int:
    """Run all that is due; how many runs that took."""
    count = 0
    while ran := drain_some(owner=owner, clock=clock, watch=watch):
        count += ran
    return count


@action
def renew(entry: OutboxEntry, *, clock: Clock) -> None:
    """Keep an entry whose handler takes its time. Raises Overtaken."""
    runs.renew(entry, now=clock.now())


@action
def void_leases(owner_prefix: str, *, clock: Clock) -> int:
    """Free what dead processes had taken; how many entries that were."""
    return runs.void(owner_prefix, now=clock.now())


def fail(entry: OutboxEntry, error: str, *, clock: Clock) -> None:
    """Count a run as failed. Raises Overtaken."""
    try:
        _fail(entry, error, clock=clock, tell=True)
    except runs.Overtaken:
        raise
    except Exception:
        # Whatever its kind does about a dead letter must not keep it from being one.
        logger.exception("nobody could be told of %s", entry, extra={"outbox_kind": entry.kind})
        _fail(entry, error, clock=clock, tell=False)


def _take_or_pass(entry: OutboxEntry, *, owner: str, clock: Clock) -> bool:
    """Take an entry; False when another drain has."""
    try:
        return _take(entry, owner=owner, clock=clock)
    except runs.LaneTaken:
        return False


def _run_to_the_end(entry: OutboxEntry, *, clock: Clock, watch: Watch) -> None:
    try:
        if runs.is_poison(entry):
            _give_up(entry, clock=clock)
            return
        with watch(entry):
            _run(entry, clock=clock)
    except runs.Overtaken:
        # Removed, or taken over: what replaced this run does what is needed.
        logger.info("overtaken: %s", entry, extra={"outbox_kind": entry.kind})


@action
def _take(entry: OutboxEntry, *, owner: str, clock: Clock) -> bool:
    return runs.take(entry, owner=owner, now=clock.now())


def _run(entry: OutboxEntry, *, clock: Clock) -> None:
    """Call the handler's two halves and complete the entry. Raises Overtaken."""
    kind = KINDS[entry.kind]
    began = time.monotonic()
    try:
        result = kind.outside(entry) if kind.outside is not None else None
        crash.at("after_handler")
        _complete(entry, result, began=began, clock=clock)
    except runs.Overtaken:
        raise
    except DatabaseBusy:
        logger.warning("the database is busy, again later: %s", entry)
        _give_back(entry, clock=clock)
    except Exception as error:
        # Whatever a handler raises is a failed run, to be tried again and then shown to people.
        logger.warning("failed: %s", entry, exc_info=error, extra={"outbox_kind": entry.kind})
        fail(entry, f"{type(error).__name__}: {error}", clock=clock)


@action
def _complete(entry: OutboxEntry, result: Any, *, began: float, clock: Clock) -> None:
    """The handler's rows and the completion of its entry, together or not at all."""
    now = clock.now()
    answer = KINDS[entry.kind].inside(entry, result, now)
    limit = settings.COWORK_HANDLER_LIMIT.total_seconds()
    if time.monotonic() - began > limit:
        raise HandlerTooSlow(f"it ran longer than {limit:g} s")
    runs.settle(entry, answer, now=now)


@action
def _give_back(entry: OutboxEntry, *, clock: Clock) -> None:
    now = clock.now()
    runs.give_back(entry, until=now + BUSY_DELAY, now=now)


@action
def _fail(entry: OutboxEntry, error: str, *, clock: Clock, tell: bool) -> None:
    runs.fail(entry, error, now=clock.now(), tell=tell)


def _give_up(entry: OutboxEntry, *, clock: Clock) -> None:
    """Park an entry as poison. Raises Overtaken."""
    try:
        _poison(entry, clock=clock, tell=True)
    except runs.Overtaken:
        raise
    except Exception:
        logger.exception("nobody could be told of %s", entry, extra={"outbox_kind": entry.kind})
        _poison(entry, clock=clock, tell=False)


@action
def _poison(entry: OutboxEntry, *, clock: Clock, tell: bool) -> None:
    runs.give_up(entry, OutboxEntry.State.POISON, POISON, now=clock.now(), tell=tell)
