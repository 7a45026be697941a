"""Tasks: made, changed, and moved along their table of states (SPEC §6.1)."""

from datetime import datetime
from typing import Any, Protocol

from cowork.models import InteractionMode, Task
from teams.models import Bot, RuntimeProfile, Team
from timeline import log
from timeline.clock import latest
from timeline.event_types import Change, TaskChanged, TaskCreated, TaskStatus
from timeline.ids import new_id
from timeline.log import Actor
from timeline.refusals import Refusal
from timeline.transactions import require_transaction
from timeline.transitions import transition


class TaskNotFound(Refusal):
    """There is no such task."""

    code = "TASK_NOT_FOUND"
    status = 404


class TaskEnded(Refusal):
    """That task has ended and takes no input any more. Write to the bot by its handle instead."""

    code = "TASK_ENDED"
    status = 409


class TurnRunning(Refusal):
    """A turn of this task runs. Wait for its end."""

    code = "TURN_RUNNING"
    status = 409


class ModeForbidsTool(Refusal):
    """In {mode} mode a task does not do this. A person can change its interaction mode."""

    code = "MODE_FORBIDS_TOOL"
    status = 403


def require_execute(task: Task) -> None:
    """Raise ModeForbidsTool for an agent whose task only plans or analyzes (SPEC §4.7)."""
    if task.interaction_mode != InteractionMode.EXECUTE:
        raise ModeForbidsTool(mode=task.interaction_mode)


class OnEnd(Protocol):
    """What becomes of the queue of a task that takes no input any more."""

    def __call__(self, task: Task, *, actor: Actor, now: datetime) -> None: ...


class OnFree(Protocol):
    """What follows when a task may start turns again."""

    def __call__(self, task: Task, *, now: datetime) -> object: ...


# Filled by the upper floor (ARCHITECTURE, ports).
_on_end: list[OnEnd] = []
_on_free: list[OnFree] = []


def on_end(function: OnEnd) -> OnEnd:
    """Have a function called in the transaction in which a task is archived or replaced."""
    _on_end.append(function)
    return function


def on_free(function: OnFree) -> OnFree:
    """Have a function called in the transaction in which a task is resumed."""
    _on_free.append(function)
    return function


def create(
    *,
    kind: str,
    title: str,
    runtime: RuntimeProfile,
    actor: Actor,
    now: datetime,
    bot: Bot | None = None,
    team: Team | None = None,
    branch_from: Task | None = None,
    **modes: Any,
) -> Task:
    """Make a dormant task with an empty timeline; it runs nothing."""
    require_transaction()
    modes.setdefault("batch_inputs", kind != Task.Kind.BOT_CONVERSATION)
    task = Task.objects.create(
        workspace_id=runtime.workspace_id,
        kind=kind,
        title=title,
        runtime=runtime,
        bot=bot,
        team=team,
        branch_from=branch_from,
        created_at=now,
        updated_at=now,
        **modes,
    )
    log.open_stream(task.stream, workspace_id=task.workspace_id)
    told = TaskCreated(
        kind=kind,
        title=title,
        bot=bot.handle if bot else None,
        branch_from=branch_from.id if branch_from else None,
    )
    log.append(task.stream, told, actor=actor, now=now)
    return task


def set_status(
    task: Task, to: str, *, actor: Actor, now: datetime, reason: str | None = None, **more: Any
) -> None:
    """Move a task to a status. Raises InvalidTransition for a step that its table has not."""
    before = task.status
    transition(task, to, updated_at=latest(now, task.updated_at), **more)
    told = TaskStatus(before=before, to=to, reason=reason)
    log.append(task.stream, told, actor=actor, now=now)


def request(task: Task, asked: str, *, reason: str, by: Actor, now: datetime) -> None:
    """Note what a person has asked for and the runtime has not confirmed yet (SPEC §6.9)."""
    _store(
        task,
        now=now,
        requested_action=asked,
        requested_at=now,
        requested_id=new_id(),
        requested_reason=reason,
        requested_by_id=by.id,
        requested_by_label=by.label,
    )


def settle_request(task: Task, *, now: datetime) -> None:
    """Forget what was asked for: it has come about, or was taken back."""
    _store(
        task,
        now=now,
        requested_action="",
        requested_at=None,
        requested_id=None,
        requested_reason="",
    )


def free(task: Task, *, now: datetime) -> None:
    """Look at once for what waits for a task that may start turns again."""
    for function in _on_free:
        function(task, now=now)


def conclude(task: Task, outcome: str, *, summary: str, actor: Actor, now: datetime) -> None:
    """Move a task that runs no turn to completed or failed, with what came of it (SPEC §6.11).

    A failed conversation takes no message by handle any more; the caller has locked its bot and
    chooses the next current one.
    """
    if task.status == outcome:
        return
    more: dict[str, Any] = {"result_outcome": outcome, "result_summary": summary}
    if outcome == Task.Status.FAILED:
        more["is_current"] = False
    set_status(task, outcome, actor=actor, now=now, reason=summary or None, **more)


def change(task: Task, *, actor: Actor, now: datetime, **changes: Any) -> None:
    """Set title, modes or batch_inputs and tell which of them were changed; nothing else moves."""
    require_transaction()
    told = [
        Change(field=name, before=getattr(task, name), to=value)
        for name, value in changes.items()
        if getattr(task, name) != value
    ]
    if not told:
        return
    _store(task, now=now, **{line.field: line.to for line in told})
    log.append(task.stream, TaskChanged(changes=told), actor=actor, now=now)


def archive(task: Task, *, actor: Actor, now: datetime) -> None:
    """Put a task away: it takes no input, keeps all history, and its queue is closed (SPEC §5.5).

    Raises TurnRunning while a turn runs.
    """
    if task.has_turn:
        raise TurnRunning
    if task.is_archived:
        return
    _store(task, now=now, archived_at=now, is_current=False)
    told = TaskChanged(changes=[Change(field="archived", before=False, to=True)])
    log.append(task.stream, told, actor=actor, now=now)
    end_queue(task, actor=actor, now=now)


def end_queue(task: Task, *, actor: Actor, now: datetime) -> None:
    """Close what waits for a task that is replaced or takes no input any more (SPEC §5.5)."""
    for function in _on_end:
        function(task, actor=actor, now=now)


def unarchive(task: Task, *, actor: Actor, now: datetime) -> None:
    """Take a task out of the archive again."""
    if not task.is_archived:
        return
    _store(task, now=now, archived_at=None)
    told = TaskChanged(changes=[Change(field="archived", before=True, to=False)])
    log.append(task.stream, told, actor=actor, now=now)


def _store(task: Task, *, now: datetime, **values: Any) -> None:
    require_transaction()
    values["updated_at"] = latest(now, task.updated_at)
    Task.objects.filter(pk=task.pk).update(**values)
    for name, value in values.items():
        setattr(task, name, value)
