"""Turns: opened, kept alive by reports, ended once (SPEC §6.3, §6.8)."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from cowork import conversations, locks, tasks
from cowork.models import Task, Turn, TurnReport
from timeline import log
from timeline.bodies import keep
from timeline.clock import latest
from timeline.event_types import (
    AgentInterruptConfirmed,
    EventType,
    TurnCause,
    TurnEnded,
    TurnLimit,
    TurnStarted,
)
from timeline.log import Actor
from timeline.models import Event
from timeline.refusals import Refusal
from timeline.transactions import require_transaction
from timeline.transitions import transition

PAUSE, STOP = "pause", "stop"
MIN_LEASE, MAX_LEASE = 30, 3600  # seconds a claim may ask for


class StaleTurn(Refusal):
    """This turn is over, or the fence is not its own. What it had not taken in comes again."""

    code = "STALE_TURN"
    status = 409
    shown = ("requeued",)


def open_turn(
    task: Task,
    *,
    cause: TurnCause,
    claimer: str,
    claim_id: str,
    lease: timedelta | None,
    receipt_ids: list[UUID],
    actor: Actor,
    now: datetime,
) -> Turn:
    """Open the task's next turn and move the task to running. The task is locked."""
    require_transaction()
    lease = lease or settings.COWORK_TURN_LEASE
    was_usable = conversations.is_usable(task)
    counters: dict[str, Any] = {
        "last_turn": task.last_turn + 1,
        "last_fence": task.last_fence + 1,
        "chain": cause.chain,
        "hop": cause.hop,
        "resumes_at": None,
    }
    tasks.set_status(task, Task.Status.RUNNING, actor=actor, now=now, **counters)
    if not was_usable and task.bot_id and task.team_id:
        locks.lock_bot(task.bot_id)
        conversations.choose_current(task.bot_id, task.team_id)
    turn = Turn.objects.create(
        task=task,
        number=task.last_turn,
        fence=task.last_fence,
        claimer=claimer,
        claim_id=claim_id,
        cause_kind=cause.kind,
        cause_id=cause.id or "",
        chain=cause.chain,
        hop=cause.hop,
        runtime_mode=task.runtime_mode,
        interaction_mode=task.interaction_mode,
        lease=lease,
        lease_expires_at=now + lease,
        started_at=now,
    )
    told = TurnStarted(turn_id=turn.id, number=turn.number, cause=cause, receipt_ids=receipt_ids)
    log.append(task.stream, told, actor=actor, now=now, subject=turn.id)
    return turn


def running_turn(task: Task) -> Turn | None:
    """The turn that runs, if one does."""
    return Turn.objects.filter(task=task, status=Turn.Status.RUNNING).first()


def started_with(turn: Turn) -> list[str]:
    """The ids of all inputs that a turn was opened with, whatever became of them."""
    [begun] = Event.objects.filter(subject=turn.id, type=EventType.TURN_STARTED)
    ids: list[str] = begun.payload["receipt_ids"]
    return ids


def extend(turn: Turn, *, now: datetime) -> None:
    """Give the turn its full lease from now on; every accepted report does."""
    set_fields(turn, lease_expires_at=latest(now + turn.lease, turn.lease_expires_at))


def is_reported(turn: Turn, event_id: str) -> bool:
    """Whether a report of this id was taken already; if not, it is noted as taken."""
    require_transaction()
    if TurnReport.objects.filter(turn=turn, event_id=event_id).exists():
        return True
    TurnReport.objects.create(turn=turn, event_id=event_id)  # the turn is locked
    return False


def end(
    turn: Turn,
    status: str,
    *,
    task: Task,
    actor: Actor,
    now: datetime,
    error: str = "",
    limit: TurnLimit | None = None,
) -> None:
    """End the turn and its task's running. Raises InvalidTransition for one that has ended."""
    transition(turn, status, ended_at=latest(now, turn.started_at), has_limit=limit is not None)
    text = keep(error, workspace_id=task.workspace_id, now=now) if error else None
    told = TurnEnded(turn_id=turn.id, number=turn.number, status=turn.status, limit=limit)
    log.append(task.stream, told, actor=actor, now=now, text=text, subject=turn.id)
    _release(task, actor=actor, now=now)


def _release(task: Task, *, actor: Actor, now: datetime) -> None:
    """The task runs no turn any more: what was asked for meanwhile has come about."""
    asked, reason = task.requested_action, task.requested_reason or None
    if asked == STOP:
        tell_stopped(task, actor=actor, now=now)
    elif asked == PAUSE:
        person = Actor("person", task.requested_by_id, task.requested_by_label)
        tasks.settle_request(task, now=now)
        tasks.set_status(task, Task.Status.PAUSED, actor=person, now=now, reason=reason)
    else:
        tasks.set_status(task, Task.Status.IDLE, actor=actor, now=now)


def tell_stopped(task: Task, *, actor: Actor, now: datetime) -> None:
    """Confirm a stop: nothing of the task runs any more (SPEC §6.9)."""
    if task.requested_id is None or task.requested_at is None:
        return
    told = AgentInterruptConfirmed(
        request_id=task.requested_id,
        reason=task.requested_reason or None,
        requested_at=task.requested_at,
    )
    tasks.settle_request(task, now=now)
    log.append(task.stream, told, actor=actor, now=now)


def set_fields(turn: Turn, **values: Any) -> None:
    """Store fields of a turn other than its status."""
    require_transaction()
    Turn.objects.filter(pk=turn.pk).update(**values)
    for name, value in values.items():
        setattr(turn, name, value)
