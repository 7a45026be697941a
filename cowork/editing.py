"""Editing a task: its title, its modes, its place in the archive."""

from typing import Any

from cowork import conversations, locks, tasks
from cowork.models import RuntimeMode, Task
from teams.permissions import May, Principal, require
from timeline.clock import Clock
from timeline.transactions import action

_WIDTH = {mode: width for width, mode in enumerate(RuntimeMode.values)}


@action
def edit(task: Task, *, by: Principal, clock: Clock, **changes: Any) -> Task:
    """Change title, archived, runtime_mode, interaction_mode or batch_inputs of a task.

    Widening a runtime mode is for managers, all else for operators (SPEC §2.7). Raises Forbidden,
    and TurnRunning when a running task is to be archived.
    """
    require(by, May.EDIT_TASKS)
    if task.bot_id and "archived" in changes:
        locks.lock_bot(task.bot_id)
    task = locks.lock_task(task.id)
    mode = changes.get("runtime_mode", task.runtime_mode)
    if _WIDTH[mode] > _WIDTH[task.runtime_mode]:
        require(by, May.WIDEN_MODES)
    now = clock.now()
    is_archived = changes.pop("archived", task.is_archived)
    tasks.change(task, actor=by.actor, now=now, **changes)
    if is_archived != task.is_archived:
        move = tasks.archive if is_archived else tasks.unarchive
        move(task, actor=by.actor, now=now)
        if task.bot_id and task.team_id:
            conversations.choose_current(task.bot_id, task.team_id)
    return task
