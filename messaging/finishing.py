"""Finishing: the end of a turn, what else waits, and the release, in one transaction (SPEC §6.7).

The last stop on the path of a message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cowork import conversations, locks, tasks, turns
from cowork.models import Task, Turn
from cowork.tasks import TurnRunning
from messaging import authority, boundary, deadlines, replies, reporting, wakes
from messaging.reports import AnyReport, Stopped
from teams.permissions import May, Principal, require
from timeline import bodies, log
from timeline.clock import Clock
from timeline.event_types import Error, TurnLimit
from timeline.log import Actor
from timeline.refusals import Forbidden
from timeline.transactions import action, require_transaction

ENDINGS = (Turn.Status.DONE, Turn.Status.ABORTED, Turn.Status.ERROR)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended, as its runtime says."""

    status: str
    text: str | None = None
    error: str = ""
    limit: TurnLimit | None = None


def end_turn(
    *,
    turn_id: UUID,
    by: Principal,
    fence: int,
    ending: Ending,
    events: Sequence[AnyReport] = (),
    clock: Clock,
) -> bool:
    """End a turn after its last reports; whether the next may start at once.

    A repeat with the same fence and status answers as before. Raises NotFound, Forbidden,
    StaleTurn, InvalidRequest.
    """
    own = reporting.own_turn(turn_id, by=by)
    may_go_on = _end(own, by=by, fence=fence, ending=ending, events=events, clock=clock)
    if not may_go_on:
        # Nothing is edge-triggered: look once more at what has come in since.
        may_go_on = _look_again(own.task_id, clock=clock)
    return may_go_on


@action
def _end(
    own: Turn,
    *,
    by: Principal,
    fence: int,
    ending: Ending,
    events: Sequence[AnyReport],
    clock: Clock,
) -> bool:
    if own.task.team_id is not None:
        locks.lock_team(own.task.team_id)
    askers = frozenset(replies.askers_of(own.task))
    turn, task, locked = reporting.lock_turn(own, more=askers)
    now = clock.now()
    if turn.fence == fence and (turn.status == ending.status or turn.was_stopped):
        return boundary.may_start(task, now=now)  # it has ended so before
    reporting.require_running(turn, fence=fence)
    reporting.apply(events, turn=turn, task=task, by=by, now=now)
    if any(isinstance(event, Stopped) for event in events):
        turns.set_fields(turn, was_stopped=True)
    if ending.text is not None:
        reporting.say(ending.text, own=True, turn=turn, task=task, by=by, now=now)
    close(turn, task, ending=ending, tasks_locked=locked, actor=by.actor, now=now)
    return boundary.may_start(task, now=now)


def close(
    turn: Turn,
    task: Task,
    *,
    ending: Ending,
    tasks_locked: dict[UUID, Task],
    actor: Actor,
    now: datetime,
) -> None:
    """End a turn and all that hangs on it: input that was not taken in, answers that are owed,
    the wake of what waits. Its task and those that get an answer are locked."""
    require_transaction()
    error = ending.error.strip()
    turns.end(turn, ending.status, task=task, actor=actor, now=now, error=error, limit=ending.limit)
    if ending.status == Turn.Status.ERROR:
        text = error or "The turn ended with an error."
        kept = bodies.keep(text, workspace_id=task.workspace_id, now=now)
        told = Error(code="RUNTIME_ERROR")
        log.append(task.stream, told, actor=actor, now=now, text=kept, subject=turn.id)
    unread = boundary.give_back_unread(
        turn,
        is_lost=ending.status == Turn.Status.LOST,
        limit=ending.limit,
        reason=error or _reason(ending.status),
        now=now,
    )
    if turn.incorporated_at is not None or not unread:
        _resume_after_limit(task, ending.limit)
    boundary.wake_the_rest(task, now=now)
    for reply in replies.answer_what_is_owed(task, turn, tasks=tasks_locked, actor=actor, now=now):
        wakes.enqueue_what_waits(reply.recipient, now=now)
    deadlines.after_turn(boundary.delivered_in(turn), now=now)
    wakes.enqueue_what_waits(task, now=now)


def _reason(status: str) -> str:
    return {
        Turn.Status.DONE: "The turn ended without reporting that it had taken the message in.",
        Turn.Status.ABORTED: "The turn was stopped before it had taken the message in.",
        Turn.Status.ERROR: "The turn ended with an error before it had taken the message in.",
        Turn.Status.LOST: "The turn was lost before it had taken the message in.",
    }[Turn.Status(status)]


def _resume_after_limit(task: Task, limit: TurnLimit | None) -> None:
    """A turn that met a usage limit with its input taken in is followed by one at the reset."""
    if limit is not None and limit.kind == "usage" and limit.resets_at is not None:
        task.resumes_at = limit.resets_at
        Task.objects.filter(pk=task.pk).update(resumes_at=limit.resets_at)


@action
def _look_again(task_id: UUID, *, clock: Clock) -> bool:
    task = locks.lock_task(task_id)
    return wakes.enqueue_what_waits(task, now=clock.now())


@action
def complete(task: Task, *, outcome: str, summary: str, by: Principal, clock: Clock) -> Task:
    """Say that the work of a task is completed or failed: an event of its own, never implied by a
    delivery (SPEC §6.11).

    The task's own credential ends its running turn with it; for everybody else a running turn is
    TurnRunning. Raises Forbidden, ModeForbidsTool, InvalidTransition.
    """
    is_own = authority.covers(by, task)
    if not is_own:
        require(by, May.COMPLETE)
    if task.team_id is not None:
        locks.lock_team(task.team_id)
    if task.bot_id is not None:
        locks.lock_bot(task.bot_id)
    locked = locks.lock_tasks(task.id, *replies.askers_of(task))
    task = locked[task.id]
    if is_own:
        tasks.require_execute(task)
    now = clock.now()
    running = turns.running_turn(task)
    if running is not None and not is_own:
        raise TurnRunning
    if running is not None:
        if running.claimer != by.claimer:
            raise Forbidden
        close(
            running,
            task,
            ending=Ending(Turn.Status.DONE),
            tasks_locked=locked,
            actor=by.actor,
            now=now,
        )
    tasks.conclude(task, outcome, summary=summary, actor=by.actor, now=now)
    if task.bot_id is not None and task.team_id is not None:
        conversations.choose_current(task.bot_id, task.team_id)
    # One that had failed may take again what has waited in it.
    wakes.enqueue_what_waits(task, now=now)
    if outcome == Task.Status.FAILED:
        deadlines.recipient_ended(task, actor=by.actor, now=now)
    return task
