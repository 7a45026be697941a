"""Reopening: a new dormant conversation beside an old one (SPEC §3.6)."""

from datetime import datetime

from cowork import conversations, locks, tasks
from cowork.models import Task
from teams import members
from teams.authority import BotMembershipRevoked, BotNotFound, is_member
from teams.models import Bot, Member, Team
from teams.permissions import May, Principal, require
from timeline import audit, log
from timeline.clock import Clock
from timeline.event_types import MembershipRepaired
from timeline.refusals import Refusal
from timeline.transactions import action


class ConversationUnavailable(Refusal):
    """Only a bot's conversation can be reopened."""

    code = "BOT_CONVERSATION_UNAVAILABLE"
    status = 409


@action
def reopen(task: Task, *, by: Principal, clock: Clock, repair_membership: bool = False) -> Task:
    """Make a new dormant conversation linked to the old one; nothing is copied, nothing runs.

    What was queued for the old one is closed. With a removed membership it is refused until a
    manager asks for `repair_membership`; the membership is restored first. A team that became
    unavailable is kept, never swapped. Raises Forbidden, ConversationUnavailable, BotNotFound,
    BotMembershipRevoked, TurnRunning.
    """
    require(by, May.EDIT_TASKS)
    if repair_membership:
        require(by, May.MANAGE)
    if task.kind != Task.Kind.BOT_CONVERSATION or task.bot_id is None:
        raise ConversationUnavailable
    team = locks.lock_team(task.team_id, shared=not repair_membership) if task.team_id else None
    bot = locks.lock_bot(task.bot_id)
    old = locks.lock_task(task.id)
    if not bot.is_active:
        raise BotNotFound(name=bot.handle)
    if old.has_turn:
        raise tasks.TurnRunning
    now = clock.now()
    if team is not None and not is_member(team, bot):
        if not repair_membership:
            raise BotMembershipRevoked(bot=bot.display_name)
        _bring_back(team, bot, now=now)
        told = MembershipRepaired(bot=bot.handle, team=team.id)
        log.append(old.stream, told, actor=by.actor, now=now)
        _record(team, bot, by=by, now=now)
    tasks.end_queue(old, actor=by.actor, now=now)
    return conversations.open_conversation(
        bot,
        team=team,
        title=old.title,
        actor=by.actor,
        now=now,
        branch_from=old,
        runtime_mode=old.runtime_mode,
        interaction_mode=old.interaction_mode,
        batch_inputs=old.batch_inputs,
    )


def _bring_back(team: Team, bot: Bot, *, now: datetime) -> None:
    """A former lead may never have had a row of its own."""
    former = Member.objects.filter(team=team, bot=bot).first()
    if former is None:
        members.add(team, bot, now=now)
    else:
        members.restore(former, now=now)


def _record(team: Team, bot: Bot, *, by: Principal, now: datetime) -> None:
    audit.record(
        "member.restore",
        workspace_id=team.workspace_id,
        actor=by.actor,
        target_kind="team",
        target_id=team.id,
        now=now,
        bot=bot.handle,
    )
