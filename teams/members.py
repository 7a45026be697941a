"""Who belongs to a team: its row lock, and members that come, go and come back (SPEC §3.2)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from teams.models import Bot, Member, Team, Workspace
from teams.texts import many_lines, one_line
from timeline.clock import latest
from timeline.refusals import InvalidRequest, NotFound, Refusal
from timeline.transactions import require_transaction
from timeline.transitions import transition


class AlreadyAMember(Refusal):
    """{bot} is a member of this team already."""

    code = "INVALID_TRANSITION"
    status = 409
    shown = ("status",)


class WasAMember(Refusal):
    """{bot} was a member of this team and was removed. Restore it instead."""

    code = "INVALID_TRANSITION"
    status = 409
    shown = ("status",)


class TeamNameTaken(InvalidRequest):
    """There is a team called {name} already."""


class LeadStays(Refusal):
    """{bot} leads this team. Name another lead first."""

    code = "INVALID_TRANSITION"
    status = 409


def lock_team(team_id: UUID, *, shared: bool) -> Team:
    """Lock the team's row and read it: shared by sends and claims, exclusive for its changes.

    Its first of all locks (SPEC §2.4). On SQLite the immediate transaction is the lock.
    """
    require_transaction()
    if connection.vendor != "postgresql":
        found = Team.objects.filter(pk=team_id).first()
    elif shared:
        rows = Team.objects.raw("SELECT * FROM teams_team WHERE id = %s FOR SHARE", [team_id])
        found = next(iter(rows), None)
    else:
        found = Team.objects.select_for_update(no_key=True).filter(pk=team_id).first()
    if found is None:
        raise NotFound
    return found


def make_team(
    workspace: Workspace,
    *,
    name: str,
    lead: Bot,
    members: Sequence[Bot],
    is_persistent: bool,
    is_active: bool,
    now: datetime,
) -> Team:
    """Make a team and its members. Raises TeamNameTaken; the workspace is locked."""
    require_transaction()
    name = one_line(name, field="name")
    if Team.objects.filter(workspace=workspace, name=name).exists():
        raise TeamNameTaken(name=name)
    _require_fit(workspace.pk, lead)
    team = Team.objects.create(
        workspace=workspace,
        name=name,
        lead=lead,
        is_persistent=is_persistent,
        is_active=is_active,
        created_at=now,
        updated_at=now,
    )
    for bot in members:
        add(team, bot, now=now)
    return team


def change_team(team: Team, *, now: datetime, **values: Any) -> list[str]:
    """Set name, lead, is_persistent or is_active, and tell which are new; the team is locked.

    A former member can't lead; it is restored first.
    """
    require_transaction()
    if "name" in values:
        values["name"] = one_line(values["name"], field="name")
        others = Team.objects.filter(workspace=team.workspace_id, name=values["name"])
        if others.exclude(pk=team.pk).exists():
            raise TeamNameTaken(name=values["name"])
    if "lead" in values and values["lead"] != team.lead:
        _require_fit(team.workspace_id, values["lead"])
        if team.members.filter(bot=values["lead"], status=Member.Status.REMOVED).exists():
            raise WasAMember(bot=values["lead"].display_name, status=Member.Status.REMOVED)
    fresh = {name: value for name, value in values.items() if getattr(team, name) != value}
    if fresh:
        fresh["updated_at"] = latest(now, team.updated_at)
        Team.objects.filter(pk=team.pk).update(**fresh)
        for name, value in fresh.items():
            setattr(team, name, value)
    return sorted(fresh.keys() - {"updated_at"})


def add(team: Team, bot: Bot, *, guidance: str = "", now: datetime) -> Member:
    """Make a bot a member. Refuses members, and former ones: those are restored."""
    require_transaction()
    _require_fit(team.workspace_id, bot)
    guidance = many_lines(guidance, field="guidance")
    present = Member.objects.filter(team=team, bot=bot).first()
    if present is not None:
        refusal = AlreadyAMember if present.status == Member.Status.ACTIVE else WasAMember
        raise refusal(bot=bot.display_name, status=present.status)
    return Member.objects.create(team=team, bot=bot, guidance=guidance, joined_at=now)


def remove(member: Member, *, team: Team, now: datetime) -> None:
    """End a membership. Refuses for the lead, with or without a member row."""
    refuse_for_lead(team, member.bot)
    transition(member, Member.Status.REMOVED, left_at=now)


def restore(member: Member, *, now: datetime) -> None:
    """Bring a former member back, from now on."""
    transition(member, Member.Status.ACTIVE, joined_at=now, left_at=None)


def refuse_for_lead(team: Team, bot: Bot) -> None:
    """Raise LeadStays for the bot that leads the team."""
    if team.lead_id == bot.pk:
        raise LeadStays(bot=bot.display_name)


def member_of(team: Team, handle: str) -> Member:
    """The member row of a bot, active or removed. Raises NotFound."""
    found = Member.objects.select_related("bot").filter(team=team, bot__handle=handle).first()
    if found is None:
        raise NotFound
    return found


def _require_fit(workspace_id: UUID, bot: Bot) -> None:
    """Refuse a bot of another workspace as one that does not exist, and a deactivated one."""
    if bot.workspace_id != workspace_id:
        raise NotFound
    if not bot.is_active:
        raise InvalidRequest(reason=f"The bot {bot.handle} is deactivated. Bring it back first.")


def teams_of(bot: Bot) -> set[UUID]:
    """The teams that the bot is or was in."""
    led = Team.objects.filter(lead=bot).values_list("pk", flat=True)
    joined = Member.objects.filter(bot=bot).values_list("team_id", flat=True)
    return {*led, *joined}
