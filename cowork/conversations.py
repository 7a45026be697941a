"""Which conversation of a bot a message goes to: the newest usable one (SPEC §3.4)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from cowork import locks, tasks
from cowork.models import Task
from teams.models import Bot, Team
from timeline.log import SYSTEM, Actor
from timeline.transactions import require_transaction


def conversation_of(bot: Bot, team: Team, *, actor: Actor = SYSTEM, now: datetime) -> Task:
    """The bot's current conversation in the team; a new dormant one when it has none usable."""
    require_transaction()
    found = current_of(bot, team)
    if found is not None:
        return found
    locks.lock_bot(bot.id)
    # Somebody else may have made it while this one waited for the lock.
    return current_of(bot, team) or open_conversation(
        bot, team=team, title=bot.display_name, actor=actor, now=now
    )


def current_of(bot: Bot, team: Team) -> Task | None:
    """The conversation that a send by handle uses now."""
    return Task.objects.filter(bot=bot, team=team, is_current=True).first()


def open_conversation(
    bot: Bot,
    *,
    team: Team | None,
    title: str,
    actor: Actor,
    now: datetime,
    branch_from: Task | None = None,
    **modes: Any,
) -> Task:
    """Make a dormant conversation; within a team it is now the current one. The bot is locked."""
    if team is not None:
        Task.objects.filter(bot=bot, team=team, is_current=True).update(is_current=False)
    return tasks.create(
        kind=Task.Kind.BOT_CONVERSATION,
        title=title,
        runtime=bot.runtime,
        bot=bot,
        team=team,
        is_current=team is not None,
        branch_from=branch_from,
        actor=actor,
        now=now,
        **modes,
    )


def choose_current(bot_id: UUID, team_id: UUID) -> None:
    """Mark the newest usable conversation as the current one, after one became usable or ceased.

    The bot is locked by the caller.
    """
    require_transaction()
    rows = Task.objects.filter(bot_id=bot_id, team_id=team_id, kind=Task.Kind.BOT_CONVERSATION)
    newest = rows.usable().order_by("-created_at", "-id").values_list("pk", flat=True).first()
    others = rows if newest is None else rows.exclude(pk=newest)
    others.filter(is_current=True).update(is_current=False)
    if newest is not None:
        rows.filter(pk=newest).update(is_current=True)


def is_usable(task: Task) -> bool:
    """Whether a message can be queued for it: neither failed nor archived (SPEC §6.1)."""
    return not task.is_archived and task.status != Task.Status.FAILED
