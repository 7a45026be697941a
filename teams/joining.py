"""Joining: a bot becomes a member of a team (SPEC §3.2)."""

from uuid import UUID

from teams import bots, members
from teams.models import Member
from teams.permissions import May, Principal, require
from timeline import audit
from timeline.clock import Clock
from timeline.refusals import NotFound
from timeline.transactions import action


@action
def join(team_id: UUID, *, handle: str, guidance: str, by: Principal, clock: Clock) -> Member:
    """Make a bot a member. Raises NotFound, Forbidden, AlreadyAMember, WasAMember."""
    require(by, May.MANAGE)
    team = members.lock_team(team_id, shared=False)
    if team.workspace_id != by.workspace_id:
        raise NotFound
    now = clock.now()
    member = members.add(
        team, bots.with_handle(team.workspace_id, handle), guidance=guidance, now=now
    )
    audit.record(
        "member.join",
        workspace_id=team.workspace_id,
        actor=by.actor,
        target_kind="team",
        target_id=team.id,
        now=now,
        bot=handle,
    )
    return member
