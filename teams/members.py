"""Who belongs to a team: its row lock, and members that come, go and come back (SPEC §3.2)."""

from datetime import datetime
from uuid import UUID

from django.db import connection

from teams.models import Bot, Member, Team
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


def add(team: Team, bot: Bot, *, guidance: str = "", now: datetime) -> Member:
    """Make a bot a member. Refuses members, and former ones: those are restored."""
    require_transaction()
    _require_same_workspace(team, bot)
    present = Member.objects.filter(team=team, bot=bot).first()
    if present is not None:
        refusal = AlreadyAMember if present.status == Member.Status.ACTIVE else WasAMember
        raise refusal(bot=bot.display_name, status=present.status)
    if not bot.is_active:
        raise InvalidRequest(reason=f"The bot {bot.handle} is deactivated.")
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


def is_member(team: Team, bot: Bot) -> bool:
    """Whether the bot belongs to the team now; the lead does without a member row."""
    return team.lead_id == bot.pk or Member.objects.active().filter(team=team, bot=bot).exists()


def _require_same_workspace(team: Team, bot: Bot) -> None:
    if team.workspace_id != bot.workspace_id:
        raise NotFound
