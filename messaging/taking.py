"""Taking: the claim, the one way to start a turn (SPEC §6.3).

Next on the path of a message: `messaging/boundary.py`.
"""

import functools
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from cowork import locks, sessions
from cowork.models import Task, Turn
from cowork.tasks import TaskEnded, TurnRunning
from messaging import authority, boundary, wakes
from messaging.models import Receipt
from teams.permissions import Principal
from timeline import crash
from timeline.clock import Clock
from timeline.transactions import action
from timeline.transitions import invalid

# What a person holds; an agent's own input does not lift it (SPEC §6.1, §6.9).
_HELD = (Task.Status.PAUSED, Task.Status.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A turn and its inputs, in order; `is_known` when the same claim was answered before."""

    turn: Turn
    task: Task
    inputs: list[Receipt]
    is_known: bool


@action
def claim(
    *,
    task: Task,
    by: Principal,
    clock: Clock,
    claim_id: str = "",
    lease: timedelta | None = None,
    start: bool = False,
) -> Claimed | None:
    """Open the task's next turn and start what it takes; None when nothing starts one.

    `start`: the runtime has input of its own. The same claim_id of the same claimer is answered
    with the same turn. Raises TaskNotFound, Forbidden, TurnRunning, TaskEnded, InvalidTransition
    for own input where a person has paused or stopped the task.
    """
    authority.require_cover(by, task)
    if task.team_id is not None:
        locks.lock_team(task.team_id)
    if task.bot_id is not None and task.status == Task.Status.FAILED:
        locks.lock_bot(task.bot_id)  # a turn may make it the current conversation again
    task = locks.lock_task(task.id)
    known = _known_turn(task, by, claim_id)
    if known is not None:
        return Claimed(known, task, boundary.held_by(known), is_known=True)
    if task.has_turn:
        raise TurnRunning
    if start and task.is_archived:
        raise TaskEnded
    now = clock.now()
    if not start and not boundary.may_start(task, now=now):
        return None
    if start and task.status in _HELD and not boundary.may_start(task, now=now):
        raise invalid(task, task.status)
    inputs = boundary.admit(task, now=now)
    if not start and not boundary.may_start(task, now=now):
        return None  # what waited may not be delivered any more
    sessions.check(task, now=now)
    turn = boundary.open_turn(
        task,
        boundary.ripe(inputs, now=now),
        by=by,
        claim_id=claim_id,
        lease=lease,
        now=now,
    )
    wakes.drop_wake(task)
    transaction.on_commit(functools.partial(crash.at, "after_claim"))
    return Claimed(turn, task, boundary.held_by(turn), is_known=False)


def _known_turn(task: Task, by: Principal, claim_id: str) -> Turn | None:
    if not claim_id:
        return None
    rows = Turn.objects.filter(task=task, claimer=by.claimer, claim_id=claim_id)
    return rows.first()
