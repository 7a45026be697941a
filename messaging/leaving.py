"""Leaving: a member goes, a team is changed or switched off, a bot is put out of use (SPEC §2.4).

Each promises in its own transaction that the team is looked at anew: what is queued between
parties that may no longer exchange it is quarantined. Next stop: messaging/quarantining.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from cowork import credentials, locks, outbox
from cowork.models import Task
from messaging import deadlines, receipts
from messaging.quarantining import RECHECK_TEAM, RecheckTeam
from teams import bots, members, workspaces
from teams.models import Bot, Team
from teams.permissions import May, Principal, require
from timeline import audit
from timeline.clock import Clock
from timeline.refusals import NotFound
from timeline.transactions import action

# What of a team decides who may write to whom.
AUTHORITY = frozenset({"lead", "is_active", "is_persistent"})


@action
def remove_member(team_id: UUID, *, handle: str, by: Principal, clock: Clock) -> None:
    """End a membership. Raises NotFound, Forbidden, LeadStays, InvalidTransition."""
    require(by, May.MANAGE)
    team = _locked(team_id, by)
    bot = bots.with_handle(team.workspace_id, handle)
    members.refuse_for_lead(team, bot)
    member = members.member_of(team, handle)
    now = clock.now()
    members.remove(member, team=team, now=now)
    _promise_recheck(team, now=now)
    _record("member.remove", "team", team, by=by, now=now, bot=handle)


@action
def change_team(
    team_id: UUID, *, by: Principal, clock: Clock, lead: str | None = None, **changes: Any
) -> Team:
    """Change name, lead, is_active or is_persistent of a team.

    Raises NotFound, Forbidden, InvalidRequest, TeamNameTaken, WasAMember.
    """
    require(by, May.MANAGE)
    workspaces.lock(by.workspace_id)
    team = _locked(team_id, by)
    if lead is not None:
        changes["lead"] = bots.with_handle(team.workspace_id, lead)
    now = clock.now()
    changed = members.change_team(team, now=now, **changes)
    if AUTHORITY.intersection(changed):
        _promise_recheck(team, now=now)
    if changed:
        _record("team.edit", "team", team, by=by, now=now, fields=changed)
    return team


@action
def deactivate_bot(handle: str, *, by: Principal, clock: Clock) -> Bot:
    """Put a bot out of use: its credentials are revoked, its queues closed, its history stays.

    A second time changes nothing. Raises NotFound, Forbidden, SystemBotStays.
    """
    require(by, May.MANAGE)
    found = bots.with_handle(by.workspace_id, handle)
    teams = [locks.lock_team(team_id, shared=False) for team_id in sorted(members.teams_of(found))]
    bot = locks.lock_bot(found.id)
    if not bot.is_active:
        return bot
    ids = Task.objects.filter(bot=bot).values_list("pk", flat=True)
    tasks = locks.lock_tasks(*ids)
    now = clock.now()
    bots.deactivate(bot, now=now)
    credentials.revoke_of_bot(bot, now=now)
    for task_id in sorted(tasks):
        receipts.close_queue(tasks[task_id], actor=by.actor, now=now)
        deadlines.recipient_ended(tasks[task_id], actor=by.actor, now=now)
    for team in teams:
        _promise_recheck(team, now=now)
    _record("bot.deactivate", "bot", bot, by=by, now=now)
    return bot


def _locked(team_id: UUID, by: Principal) -> Team:
    team = locks.lock_team(team_id, shared=False)
    if team.workspace_id != by.workspace_id:
        raise NotFound
    return team


def _promise_recheck(team: Team, *, now: datetime) -> None:
    outbox.enqueue(
        RECHECK_TEAM,
        target=team.id,
        workspace_id=team.workspace_id,
        payload=RecheckTeam(team_id=team.id),
        now=now,
        unique=True,
    )


def _record(
    name: str, kind: str, row: Team | Bot, *, by: Principal, now: datetime, **detail: Any
) -> None:
    audit.record(
        name,
        workspace_id=row.workspace_id,
        actor=by.actor,
        target_kind=kind,
        target_id=row.id,
        now=now,
        **detail,
    )
