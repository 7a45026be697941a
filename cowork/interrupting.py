"""Interrupting: a person pauses, resumes or stops a task (SPEC §6.9).

What was asked for is told apart from what has come about: a running turn ends in its own time, and
only then is a pause or a stop confirmed.
"""

from datetime import datetime

from cowork import locks, outbox, tasks, turns
from cowork.models import Task
from teams.permissions import May, Principal, require
from timeline import bodies, log
from timeline.clock import Clock
from timeline.event_types import AgentInterruptRequested, Note
from timeline.transactions import action
from timeline.transitions import invalid

PAUSABLE = (Task.Status.IDLE, Task.Status.RUNNING, Task.Status.COMPLETED)
STOPPABLE = (Task.Status.IDLE, Task.Status.RUNNING, Task.Status.PAUSED)


@action
def pause(task: Task, *, by: Principal, reason: str = "", clock: Clock) -> Task:
    """Let no new turn begin; confirmed when none runs. A second time changes nothing.

    Raises Forbidden, InvalidTransition for a task that is stopped or has ended.
    """
    require(by, May.INTERRUPT)
    task = locks.lock_task(task.id)
    if task.status == Task.Status.PAUSED or task.requested_action == turns.PAUSE:
        return task
    if task.status not in PAUSABLE or task.is_archived:
        raise invalid(task, task.status)
    now = clock.now()
    if turns.running_turn(task) is None:
        tasks.set_status(task, Task.Status.PAUSED, actor=by.actor, now=now, reason=reason or None)
        return task
    tasks.request(task, turns.PAUSE, reason=reason, by=by.actor, now=now)
    text = "A pause was asked for. It begins when this turn ends."
    _note(task, text, key="pause_requested", by=by, now=now)
    return task


@action
def resume(task: Task, *, by: Principal, reason: str = "", clock: Clock) -> Task:
    """Lift a pause, or take back one that is not confirmed yet; what waits is looked at at once.

    Raises Forbidden, InvalidTransition for a task that is not paused.
    """
    require(by, May.INTERRUPT)
    task = locks.lock_task(task.id)
    now = clock.now()
    if task.requested_action == turns.PAUSE:
        tasks.settle_request(task, now=now)
        _note(task, "The pause was taken back before it began.", key=None, by=by, now=now)
        return task
    if task.status != Task.Status.PAUSED or task.is_archived:
        raise invalid(task, task.status)
    tasks.set_status(task, Task.Status.IDLE, actor=by.actor, now=now, reason=reason or None)
    tasks.free(task, now=now)
    return task


@action
def stop(task: Task, *, by: Principal, reason: str = "", clock: Clock) -> Task:
    """Stop a task until somebody follows up: work that would start it again goes, the running turn
    is asked to stop, what is queued waits.

    Confirmed at once where nothing runs, else when the runtime has stopped or its lease is gone.
    A stopped or ended task is left as it is, without an event. Raises Forbidden.
    """
    require(by, May.INTERRUPT)
    task = locks.lock_task(task.id)
    if task.status not in STOPPABLE or task.is_archived:
        return task
    now = clock.now()
    tasks.set_status(
        task,
        Task.Status.INTERRUPTED,
        actor=by.actor,
        now=now,
        reason=reason or None,
        resumes_at=None,
    )
    tasks.request(task, turns.STOP, reason=reason, by=by.actor, now=now)
    told = AgentInterruptRequested(
        request_id=task.requested_id,
        reason=reason or None,
        requested_at=task.requested_at,
    )
    log.append(task.stream, told, actor=by.actor, now=now)
    outbox.remove_reviving(task.id)
    if turns.running_turn(task) is None:
        turns.tell_stopped(task, actor=by.actor, now=now)
    return task


def _note(task: Task, text: str, *, key: str | None, by: Principal, now: datetime) -> None:
    kept = bodies.keep(text, workspace_id=task.workspace_id, now=now)
    log.append(task.stream, Note(level="info", key=key), actor=by.actor, now=now, text=kept)
