"""The teammates of a conversation: who can be written to, why not, and the way back (SPEC §3.5)."""

from typing import Any

from cowork import conversations
from cowork.models import Task
from teams import authority
from teams.models import Bot, Member, Team


def rows(task: Task) -> list[dict[str, Any]]:
    """One row per member of the conversation's team, former ones included; oneself as well.

    The first that applies of team, membership, conversation. What makes a send by handle refused
    is not `available`.
    """
    if task.bot is None or task.team is None:
        return []
    is_usable = authority.is_usable(task.team)
    return [
        _row(bot, task, task.team, is_active=is_active, is_usable=is_usable)
        for bot, is_active in _members(task.team)
    ]


def _members(team: Team) -> list[tuple[Bot, bool]]:
    listed = {
        member.bot: member.status == Member.Status.ACTIVE
        for member in Member.objects.filter(team=team).select_related("bot")
    }
    listed[team.lead] = True  # counts as a member, with or without a row
    return sorted(listed.items(), key=lambda pair: pair[0].handle)


def _row(bot: Bot, task: Task, team: Team, *, is_active: bool, is_usable: bool) -> dict[str, Any]:
    current = conversations.current_of(bot, team)
    availability, reason, recovery = _standing(
        bot, task, current, is_active=is_active, is_usable=is_usable
    )
    return {
        "bot": bot.handle,
        "label": bot.display_name,
        "task_id": str(current.id) if current else None,
        "availability": availability,
        "reason": reason,
        "recovery": recovery,
        "self": bot.id == task.bot_id,
    }


def _standing(
    bot: Bot, task: Task, current: Task | None, *, is_active: bool, is_usable: bool
) -> tuple[str, str | None, str | None]:
    if not is_usable:
        return "team_unavailable", "team", None
    if not is_active:
        return "membership_revoked", "removed", "repair_membership"
    if bot.id == task.bot_id:
        return "conversation_unavailable", "self", None
    if not bot.is_active:
        return "conversation_unavailable", "deactivated", None
    if current is None:
        return "available", "new_conversation", "reopen"
    if current.status == Task.Status.PAUSED:
        return "available", "paused", None
    if current.status == Task.Status.INTERRUPTED:
        return "available", "stopped", "reopen"
    return "available", None, None


def tools(task: Task) -> list[dict[str, Any]]:
    """The coordination tools, and whether the task may use each now (SPEC §4.7)."""
    is_free = task.interaction_mode == "execute"
    is_teammate = task.bot is not None and may_send(task)
    reason = f"Not in {task.interaction_mode} mode."
    return [
        {
            "name": "send_agent_message",
            "allowed": is_teammate,
            "reason": None if is_teammate else "This task is in no team that carries messages.",
        },
        {"name": "complete", "allowed": is_free, "reason": None if is_free else reason},
    ]


def may_send(task: Task) -> bool:
    """Whether the database shows the task as a conversation of an active member of its team."""
    if task.kind != Task.Kind.BOT_CONVERSATION or task.bot is None:
        return False
    return authority.may_exchange(task.team, task.bot) is None
