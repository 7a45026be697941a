"""Repairing: a removed member comes back (SPEC §3.6).

Nothing else follows from it: what was quarantined meanwhile waits for its release.
"""

from uuid import UUID

from teams import members
from teams.models import Member
from teams.permissions import May, Principal, require
from timeline import audit
from timeline.clock import Clock
from timeline.refusals import NotFound
from timeline.transactions import action


@action
def restore(team_id: UUID, *, handle: str, by: Principal, clock: Clock) -> Member:
    """Restore a removed membership. Raises NotFound, Forbidden, InvalidTransition."""
    require(by, May.MANAGE)
    team = members.lock_team(team_id, shared=False)
    if team.workspace_id != by.workspace_id:
        raise NotFound
    member = members.member_of(team, handle)
    now = clock.now()
    members.restore(member, now=now)
    audit.record(
        "member.restore",
        workspace_id=team.workspace_id,
        actor=by.actor,
        target_kind="team",
        target_id=team.id,
        now=now,
        bot=handle,
    )
    return member
