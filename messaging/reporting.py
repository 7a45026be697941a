"""Reporting: what a turn says of itself while it runs (SPEC §6.4, §6.8).

Next on the path of a message: `messaging/finishing.py`.
"""

import functools
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from cowork import locks, sessions, turns
from cowork.models import Task, Turn
from messaging import authority, boundary, reports
from messaging.models import Receipt
from messaging.reports import AnyReport
from teams.permissions import Principal
from timeline import bodies, crash, log
from timeline.clock import Clock
from timeline.event_types import AssistantMessage, Note, ToolActivity
from timeline.refusals import Forbidden, NotFound
from timeline.single import one_or_none
from timeline.transactions import action


@action
def report(
    *, turn_id: UUID, by: Principal, fence: int, events: Sequence[AnyReport], clock: Clock
) -> Turn:
    """Take reports of a running turn, in order, all or none; its lease begins anew.

    Raises NotFound, Forbidden, StaleTurn (with what comes again), InvalidRequest.
    """
    turn, task, _tasks = lock_turn(own_turn(turn_id, by=by))
    require_running(turn, fence=fence)
    now = clock.now()
    apply(events, turn=turn, task=task, by=by, now=now)
    turns.extend(turn, now=now)
    if any(isinstance(event, reports.Incorporated) for event in events):
        transaction.on_commit(functools.partial(crash.at, "after_incorporate_commit"))
        crash.at("before_incorporate_commit")
    return turn


@action
def heartbeat(*, turn_id: UUID, by: Principal, fence: int, clock: Clock) -> Turn:
    """Keep a running turn alive. Raises NotFound, Forbidden, StaleTurn."""
    turn, _task, _tasks = lock_turn(own_turn(turn_id, by=by))
    require_running(turn, fence=fence)
    turns.extend(turn, now=clock.now())
    return turn


def find_turn(turn_id: UUID, *, by: Principal) -> Turn:
    """A turn of the caller's workspace. Raises NotFound for all others alike."""
    rows = Turn.objects.select_related("task")
    turn = one_or_none(rows.filter(pk=turn_id, task__workspace_id=by.workspace_id))
    if turn is None:
        raise NotFound
    return turn


def own_turn(turn_id: UUID, *, by: Principal) -> Turn:
    """A turn that this very credential has claimed (SPEC §2.7). Raises NotFound, Forbidden."""
    turn = find_turn(turn_id, by=by)
    if not authority.covers(by, turn.task) or turn.claimer != by.claimer:
        raise Forbidden
    return turn


def lock_turn(
    own: Turn, *, more: frozenset[UUID] = frozenset()
) -> tuple[Turn, Task, dict[UUID, Task]]:
    """Lock a turn, its task, those whose messages it holds, and `more` tasks."""
    tasks = locks.lock_tasks(own.task_id, *more, *senders_of(own))
    turn = locks.lock_turn(own.id)
    return turn, tasks[turn.task_id], tasks


def require_running(turn: Turn, *, fence: int) -> None:
    """Raise StaleTurn, which names what had started in it and comes again, unless the turn runs
    and the fence is its own."""
    if turn.status != Turn.Status.RUNNING or turn.fence != fence:
        raise turns.StaleTurn(requeued=requeued_from(turn))


def senders_of(turn: Turn) -> set[UUID]:
    """The tasks whose messages a turn holds."""
    rows = Receipt.objects.filter(turn=turn).values_list("sender_task_id", flat=True)
    return {task_id for task_id in rows if task_id is not None}


def requeued_from(turn: Turn) -> list[str]:
    """The inputs that a turn had started and that wait again or have gone to a later one."""
    at_rest = (Receipt.Status.FAILED, Receipt.Status.QUARANTINED)
    rows = Receipt.objects.filter(pk__in=turns.started_with(turn)).exclude(turn=turn)
    gone = rows.exclude(status__in=at_rest).order_by("sequence")
    return [str(receipt_id) for receipt_id in gone.values_list("pk", flat=True)]


def apply(
    events: Sequence[AnyReport], *, turn: Turn, task: Task, by: Principal, now: datetime
) -> None:
    """Apply reports within the caller's transaction; one whose id is known is passed over."""
    for event in events:
        if not turns.is_reported(turn, event.event_id):
            _apply_one(event, turn=turn, task=task, by=by, now=now)


def _apply_one(event: AnyReport, *, turn: Turn, task: Task, by: Principal, now: datetime) -> None:
    match event:
        case reports.Accepted(session_ref=ref):
            turns.set_fields(turn, accepted_at=turn.accepted_at or now)
            if ref is not None:
                sessions.bind(task, ref, now=now)
        case reports.Incorporated(through=through):
            boundary.incorporate(turn, task, through=through, actor=by.actor, now=now)
        case reports.AssistantMessage(text=text, own=own):
            say(text, own=own, turn=turn, task=task, by=by, now=now)
        case reports.Note(level=level, text=text):
            kept = bodies.keep(text, workspace_id=task.workspace_id, now=now)
            told = Note(level=level)
            log.append(task.stream, told, actor=by.actor, now=now, text=kept, subject=turn.id)
        case reports.Stopped():
            pass  # messaging/finishing.py ends the turn
        case reports.ToolActivity(label=label, phase=phase):
            activity = ToolActivity(label=label, phase=phase)
            log.append(task.stream, activity, actor=by.actor, now=now, subject=turn.id)


def say(text: str, *, own: bool, turn: Turn, task: Task, by: Principal, now: datetime) -> None:
    """Append what the agent said; the last own text that is not blank is the turn's final one."""
    kept = bodies.keep(text, workspace_id=task.workspace_id, now=now)
    told = AssistantMessage(turn_id=turn.id, own=own)
    log.append(task.stream, told, actor=by.actor, now=now, text=kept, subject=turn.id)
    if own and text.strip():
        turns.set_fields(turn, final_text=kept)
