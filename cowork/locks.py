"""Row locks, always in one order: team, bots, tasks, turns, receipts, outbox entries, streams.

Several of a kind are locked in key order, or two messages that cross lock each other out. On
SQLite these are plain reads: there the transaction itself is alone.
"""

from uuid import UUID

from cowork.models import Task, Turn
from teams import members
from teams.models import Bot, Team
from timeline.transactions import require_transaction


def lock_team(team_id: UUID, *, shared: bool = True) -> Team:
    """Lock a team: shared by sends and claims, alone for changes of it (SPEC §2.4)."""
    return members.lock_team(team_id, shared=shared)


def lock_bot(bot_id: UUID) -> Bot:
    """Lock a bot while its current conversation is chosen or made."""
    require_transaction()
    return Bot.objects.select_for_update(no_key=True).get(pk=bot_id)


def lock_tasks(*task_ids: UUID) -> dict[UUID, Task]:
    """Lock tasks in key order and return them by id, with bot, team, runtime and workspace."""
    require_transaction()
    rows = (
        Task.objects.select_for_update(no_key=True, of=("self",))
        .select_related("bot", "team", "runtime", "workspace")
        .filter(pk__in=set(task_ids))
        .order_by("pk")
    )
    return {task.id: task for task in rows}


def lock_task(task_id: UUID) -> Task:
    """Lock one task."""
    return lock_tasks(task_id)[task_id]


def lock_turn(turn_id: UUID) -> Turn:
    """Lock one turn; its task is locked before it."""
    require_transaction()
    return Turn.objects.select_for_update(no_key=True, of=("self",)).get(pk=turn_id)
