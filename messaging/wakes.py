"""Wakes: the outbox work that lets a task start a turn because something waits for it.

Next on the path of a message: `messaging/taking.py`.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from pydantic import BaseModel, ConfigDict

from cowork import outbox, runtimes
from cowork.kinds import DONE, Answer, Kind, Wait
from cowork.models import OutboxEntry, Task
from messaging import boundary
from timeline import log
from timeline.event_types import WakeSkipped
from timeline.log import SYSTEM

WAKE_TASK = "wake-task"
# The intervals at which a runtime out of reach is looked for; the last one repeats (SPEC §6.5).
INTERVALS = tuple(timedelta(seconds=seconds) for seconds in (1, 5, 15, 60, 300))


class WakeTask(BaseModel):
    """The task that something waits for."""

    model_config = ConfigDict(extra="forbid")

    task_id: UUID


def enqueue_wake(task: Task, *, now: datetime, not_before: datetime | None = None) -> None:
    """Promise that the task is looked at; one promise a task, brought forward if need be."""
    outbox.enqueue(
        WAKE_TASK,
        target=task.id,
        workspace_id=task.workspace_id,
        payload=WakeTask(task_id=task.id),
        now=now,
        not_before=not_before,
        unique=True,
    )


def enqueue_what_waits(task: Task, *, now: datetime) -> bool:
    """Enqueue a wake if something waits for the task, now or later; whether it may start now."""
    due_at = boundary.due_at(task, now=now)
    if due_at is None:
        return False
    enqueue_wake(task, now=now, not_before=due_at if due_at > now else None)
    return due_at <= now


def unpromised(tasks: QuerySet[Task]) -> QuerySet[Task]:
    """Those of the tasks for which no wake stands in the outbox.

    One that was given up counts: it waits for a person, and must not be given up again and again.
    """
    standing = OutboxEntry.objects.filter(target=OuterRef("pk"), kind=WAKE_TASK)
    return tasks.filter(~Exists(standing))


def drop_wake(task: Task) -> None:
    """Drop the promise: a turn has taken what it was for. The handler of a hosted runtime, which
    claims while its entry runs, goes on."""
    outbox.remove_at_rest(task.id, WAKE_TASK)


def tell_runtime(entry: OutboxEntry) -> None:
    """Outside: tell the runtime of a task that may start. A runtime out of reach is no failure."""
    task = Task.objects.select_related("runtime", "bot", "workspace").get(pk=entry.target)
    runtimes.port_of(task.runtime).wake(task, entry)


def wake_task(entry: OutboxEntry, _told: object, now: datetime) -> Answer:
    """Inside: keep the promise while something may start; its claim drops it."""
    task = Task.objects.get(pk=entry.target)
    if task.has_turn:
        # The end of the turn asks what waits, and wakes this entry then.
        return Wait() if boundary.has_wakers(task) else DONE
    due_at = boundary.due_at(task, now=now)
    if due_at is None:
        if task.status == Task.Status.INTERRUPTED:
            told = WakeSkipped(why="stopped")
            log.append(task.stream, told, actor=SYSTEM, now=now)
        return DONE
    if due_at > now:
        return Wait(until=due_at)
    return Wait(until=now + INTERVALS[min(entry.looks, len(INTERVALS) - 1)])


KIND = Kind(
    name=WAKE_TASK,
    payload=WakeTask,
    outside=tell_runtime,
    inside=wake_task,
    revives=True,
)
