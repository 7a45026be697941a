"""Recovering: what a death left behind is taken up again, at the start and by the sweep.

Every function here is safe to repeat and to run in several processes at once, and has no cap that
hides old work (SPEC §16.4).
"""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, Min, OuterRef, Q

from cowork import locks
from cowork.models import Slot, Task, Turn
from messaging import boundary, deadlines, replies, reporting, wakes
from messaging.finishing import Ending, close
from messaging.mending import complete_views
from messaging.models import Receipt
from messaging.timelines import incomplete
from timeline.clock import Clock, latest
from timeline.log import SYSTEM
from timeline.refusals import Refusal
from timeline.transactions import action

logger = logging.getLogger(__name__)

TICK = "tick"


def recover(*, clock: Clock, is_start: bool = False) -> None:
    """Take up everything: at the start of an installation, and each sweep."""
    if is_start:
        extend_leases(clock=clock)
    else:
        tick(clock=clock)
    lose_silent_turns(clock=clock)
    wake_what_waits(clock=clock)
    answer_what_is_owed(clock=clock)


@action
def extend_leases(*, clock: Clock) -> int:
    """Extend every running lease by its full length: nobody could report meanwhile (SPEC §6.8)."""
    _last, now = _beat(clock)
    return _extend(now)


@action
def tick(*, clock: Clock) -> int:
    """Note that the server is awake; after a gap, extend the leases once."""
    running = Turn.objects.filter(status=Turn.Status.RUNNING)
    facts = running.aggregate(oldest=Min("started_at"), shortest=Min("lease"))
    if facts["oldest"] is None:
        return 0
    last, now = _beat(clock)
    since = max(last, facts["oldest"]) if last is not None else facts["oldest"]
    longest_nap: timedelta = max(facts["shortest"] / 2, 2 * settings.COWORK_SWEEP)
    return _extend(now) if now - since > longest_nap else 0


def _beat(clock: Clock) -> tuple[datetime | None, datetime]:
    """Note a tick; when the one before was, and now.

    Under the lock of its row: of several ticks after a gap, one sees the gap.
    """
    began = clock.now()
    defaults = {"until": began, "beat_at": began}
    _row, is_first = Slot.objects.get_or_create(name=TICK, defaults=defaults)
    if is_first:
        return None, began
    last = Slot.objects.select_for_update().get(name=TICK).beat_at
    now = latest(clock.now(), last)
    Slot.objects.filter(name=TICK).update(until=now, beat_at=now)
    return last, now


def _extend(now: datetime) -> int:
    count = 0
    for turn in Turn.objects.filter(status=Turn.Status.RUNNING).order_by("task_id"):
        expires_at = max(turn.lease_expires_at, now) + turn.lease
        rows = Turn.objects.filter(pk=turn.pk, status=Turn.Status.RUNNING)
        count += rows.update(lease_expires_at=expires_at)
    _extend_waits(now)
    return count


def _extend_waits(now: datetime) -> None:
    """Nobody could answer meanwhile either."""
    for handoff in deadlines.pending().filter(reply_deadline_at__isnull=False):
        length = handoff.reply_timeout or settings.COWORK_REPLY_TIMEOUT
        rows = deadlines.pending().filter(pk=handoff.pk)
        rows.update(reply_deadline_at=max(handoff.reply_deadline_at or now, now) + length)


def lose_silent_turns(*, clock: Clock) -> int:
    """End as lost each turn whose lease has run out; how many."""
    expired = Turn.objects.filter(status=Turn.Status.RUNNING, lease_expires_at__lte=clock.now())
    ids = list(expired.order_by("lease_expires_at").values_list("pk", flat=True))
    return _each(ids, lambda turn_id: _lose(turn_id, clock=clock))


@action
def _lose(turn_id: UUID, *, clock: Clock) -> bool:
    turn = Turn.objects.select_related("task").get(pk=turn_id)
    if turn.task.team_id is not None:
        locks.lock_team(turn.task.team_id)
    askers = frozenset(replies.askers_of(turn.task))
    senders = reporting.senders_of(turn)
    tasks = locks.lock_tasks(turn.task_id, *askers, *senders)
    turn = locks.lock_turn(turn_id)
    now = clock.now()
    if turn.status != Turn.Status.RUNNING or turn.lease_expires_at > now:
        return False  # it has reported or ended meanwhile
    close(
        turn,
        tasks[turn.task_id],
        ending=Ending(Turn.Status.LOST, error="Its runtime has not been heard of in time."),
        tasks_locked=tasks,
        actor=SYSTEM,
        now=now,
    )
    return True


def wake_what_waits(*, clock: Clock) -> int:
    """Promise a wake to every task that something starts and nothing was promised to; how many."""
    wakers = Receipt.objects.queued().filter(recipient=OuterRef("pk"), wakes=True)
    idle = Task.objects.without_turn().filter(archived_at__isnull=True)
    rows = wakes.unpromised(idle.filter(Exists(wakers) | Q(resumes_at__isnull=False)))
    now = clock.now()
    found = [task.id for task in rows.order_by("pk") if boundary.due_at(task, now=now) is not None]
    return _each(found, lambda task_id: _wake(task_id, clock=clock))


@action
def _wake(task_id: UUID, *, clock: Clock) -> bool:
    task = locks.lock_task(task_id)
    now = clock.now()
    due = boundary.due_at(task, now=now)
    if due is None:
        return False
    wakes.enqueue_wake(task, now=now, not_before=due if due > now else None)
    return True


def complete_timelines(*, clock: Clock) -> int:
    """Complete every timeline that was told less than the receipts say, however old (SPEC §5.7);
    how many receipts. One query finds them: after ordinary work there are none."""
    found = incomplete().order_by("pk").values_list("pk", flat=True)
    return _each(list(found), lambda receipt_id: complete_views(receipt_id, clock=clock))


def answer_what_is_owed(*, clock: Clock) -> int:
    """Send the automatic replies that a death kept from being sent (SPEC §7.5); how many tasks."""
    return _each(replies.tasks_that_owe(), lambda task_id: _answer(task_id, clock=clock))


@action
def _answer(task_id: UUID, *, clock: Clock) -> bool:
    task = Task.objects.get(pk=task_id)
    if task.team_id is not None:
        locks.lock_team(task.team_id)
    tasks = locks.lock_tasks(task_id, *replies.askers_of(task))
    task = tasks[task_id]
    if task.has_turn:
        return False
    now = clock.now()
    newest = Turn.objects.filter(task=task).select_related("final_text").order_by("-number")
    sent = replies.answer_what_is_owed(task, newest.first(), tasks=tasks, actor=SYSTEM, now=now)
    for reply in sent:
        wakes.enqueue_what_waits(reply.recipient, now=now)
    return bool(sent)


def _each(ids: Iterable[UUID], step: Callable[[UUID], bool]) -> int:
    """Take one step for each id; one that fails waits for the next sweep, the rest go on."""
    count = 0
    for row_id in ids:
        try:
            count += step(row_id)
        except Refusal as refusal:
            logger.warning("recovery has left %s for the next sweep", row_id, exc_info=refusal)
        except Exception:
            # A bug that one row meets must not keep the others from being taken up.
            logger.exception("recovery has failed for %s", row_id)
    return count
