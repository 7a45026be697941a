"""Recovering: what a death left behind is taken up again, at the start and by the sweep.

Every function here is safe to repeat and to run in several processes at once, and has no cap that
hides old work (SPEC §16.4).
"""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, Min, OuterRef, Q

from cowork import locks
from cowork.models import Slot, Task, Turn
from messaging import boundary, deadlines, naps, replies, reporting, wakes
from messaging.finishing import Ending, close
from messaging.mending import complete_views
from messaging.models import Receipt
from messaging.timelines import incomplete
from timeline.clock import Clock, latest
from timeline.log import SYSTEM
from timeline.refusals import Refusal
from timeline.transactions import action

logger = logging.getLogger(__name__)


def recover(*, clock: Clock, is_start: bool = False) -> None:
    """Take up everything: at the start of an installation, and each sweep."""
    if is_start:
        extend_leases(clock=clock)
    else:
        tick(clock=clock)
    lose_silent_turns(clock=clock)
    wake_what_waits(clock=clock)
    answer_what_is_owed(clock=clock)
    bound_waits(clock=clock)


@action
def extend_leases(*, clock: Clock) -> int:
    """Extend every running lease by its full length: nobody could report meanwhile (SPEC §6.8)."""
    _last, now = _beat(clock)
    return _extend(now)


@action
def tick(*, clock: Clock) -> int:
    """Note that the server is awake; after a gap, extend the leases and the waits once."""
    watched_since = _watched_since()
    if watched_since is None:
        return 0
    last, now = _beat(clock)
    since = max(last, watched_since) if last is not None else watched_since
    return _extend(now) if now - since > naps.longest() else 0


def _watched_since() -> datetime | None:
    """Since when at the latest something has a time that runs; None when nothing has."""
    running = Turn.objects.filter(status=Turn.Status.RUNNING)
    begun = [running.aggregate(oldest=Min("started_at"))["oldest"]]
    begun += [
        row.reply_deadline_at - deadlines.length_of(row)
        for row in _bounded()
        if row.reply_deadline_at is not None
    ]
    return min((at for at in begun if at is not None), default=None)


def _bounded() -> list[Receipt]:
    return list(deadlines.pending().filter(reply_deadline_at__isnull=False).order_by("pk"))


def _beat(clock: Clock) -> tuple[datetime | None, datetime]:
    """Note a tick; when the one before was, and now.

    Under the lock of its row: of several ticks after a gap, one sees the gap.
    """
    began = clock.now()
    defaults = {"until": began, "beat_at": began}
    _row, is_first = Slot.objects.get_or_create(name=naps.TICK, defaults=defaults)
    if is_first:
        return None, began
    last = Slot.objects.select_for_update().get(name=naps.TICK).beat_at
    now = latest(clock.now(), last)
    Slot.objects.filter(name=naps.TICK).update(until=now, beat_at=now)
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
    for handoff in _bounded():
        until = max(handoff.reply_deadline_at or now, now) + deadlines.length_of(handoff)
        deadlines.pending().filter(pk=handoff.pk).update(reply_deadline_at=until)


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


def bound_waits(*, clock: Clock) -> int:
    """Give each wait an end whose answer was on its way and came to nothing (SPEC §7.3)."""
    ids = list(deadlines.endless().order_by("pk").values_list("pk", flat=True))
    return _each(ids, lambda receipt_id: _bound(receipt_id, clock=clock))


@action
def _bound(receipt_id: UUID, *, clock: Clock) -> bool:
    handoff = Receipt.objects.get(pk=receipt_id)
    locks.lock_tasks(handoff.recipient_id, handoff.sender_task_id or handoff.recipient_id)
    found = deadlines.endless().filter(pk=receipt_id).first()
    if found is not None:
        deadlines.bound(found, now=clock.now())
    return found is not None


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
