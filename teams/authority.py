"""Who may write to whom (SPEC §2.4, §3.2, §3.3). A stop on the path of a message.

Everything is read anew: what a caller holds may be older than the change that it has to respect.
The caller holds the team's row lock. Next stop: cowork/conversations.
"""

from uuid import UUID

from django.db.models import Q, QuerySet

from teams import handles
from teams.models import Bot, Member, Team
from timeline.refusals import Refusal


class BotTeamUnavailable(Refusal):
    """The team of this conversation is unavailable: it has to exist, be persistent and active. A
    manager can repair it."""

    code = "BOT_TEAM_UNAVAILABLE"
    status = 403


class BotMembershipRevoked(Refusal):
    """{bot} is no longer a member of the team. A manager can restore the membership."""

    code = "BOT_MEMBERSHIP_REVOKED"
    status = 403


class BotNotFound(Refusal):
    """No active teammate is called {name}."""

    code = "BOT_NOT_FOUND"
    status = 404
    shown = ("candidates", "nearest")


class BotAmbiguous(BotNotFound):
    """Several teammates are called {name}. Use a handle."""


def require_team(bot: Bot, team: Team | None) -> Team:
    """The team as it stands now, if the bot may exchange messages in it.

    Raises BotTeamUnavailable and BotMembershipRevoked.
    """
    present = _standing(team, bot.workspace_id)
    if present is None:
        raise BotTeamUnavailable
    if bot.pk not in _taking_part(present, bot):
        raise BotMembershipRevoked(bot=bot.display_name)
    return present


def find_teammate(sender: Bot, team: Team, name: str) -> Bot:
    """The one active member of the team, other than the sender, that the name means.

    Raises BotNotFound, with `candidates` or `nearest`, and for a former member
    BotMembershipRevoked.
    """
    teammates = _teammates(sender, team)
    for exact in handles.exactly(name):
        if (named := teammates.filter(exact).first()) is not None:
            return named
    found = handles.find(name, teammates)
    if len(found) == 1:
        return found[0]
    if found:
        raise BotAmbiguous(name=name.strip(), candidates=sorted(bot.handle for bot in found))
    former = handles.find(name, _former(sender, team))
    if former:
        raise BotMembershipRevoked(bot=former[0].display_name)
    raise BotNotFound(name=name.strip(), nearest=handles.nearest(name, teammates))


def find_in_workspace(workspace_id: UUID, name: str) -> Bot | None:
    """The bot that a name stands for in an idempotency key (SPEC §4.4), whatever became of it.

    By id or handle; by display name only where that names one bot of the workspace.
    """
    bots = Bot.objects.filter(workspace_id=workspace_id)
    for exact in handles.exactly(name):
        named = bots.filter(exact).first()
        if named is not None:
            return named
    found = handles.find(name, bots)
    return found[0] if len(found) == 1 else None


def may_exchange(team: Team | None, *bots: Bot) -> str | None:
    """Why the bots may not exchange a message in the team; None when they may."""
    present = _standing(team, *(bot.workspace_id for bot in bots))
    if present is None:
        return "The team is unavailable."
    taking_part = _taking_part(present, *bots)
    for bot in bots:
        if bot.pk not in taking_part:
            return f"{bot.display_name} is no active member of the team any more."
    return None


def is_member(team: Team, bot: Bot) -> bool:
    """Whether an active bot belongs to the team now; the lead does without a member row."""
    return bot.pk in _taking_part(team, bot)


def is_usable(team: Team) -> bool:
    """Whether the team, read anew, carries messages at all."""
    return _standing(team) is not None


def _standing(team: Team | None, *workspace_ids: UUID) -> Team | None:
    """The team read anew, if it carries messages within these workspaces."""
    if team is None:
        return None
    present = Team.objects.filter(pk=team.pk, is_active=True, is_persistent=True).first()
    if present is None or any(owner != present.workspace_id for owner in workspace_ids):
        return None
    return present


def _members(team: Team) -> QuerySet[Bot]:
    """The active bots of a team, its lead among them; a bot may be named twice."""
    joined = Q(memberships__team=team, memberships__status=Member.Status.ACTIVE)
    bots = Bot.objects.active().filter(workspace_id=team.workspace_id)
    return bots.filter(joined | Q(pk=team.lead_id))


def _taking_part(team: Team, *bots: Bot) -> set[UUID]:
    """Which of the bots are active members."""
    found = _members(team).filter(pk__in=[bot.pk for bot in bots])
    return set(found.values_list("pk", flat=True))


def _teammates(sender: Bot, team: Team) -> QuerySet[Bot]:
    return _members(team).exclude(pk=sender.pk).distinct()


def _former(sender: Bot, team: Team) -> list[Bot]:
    """Those that were members; a deactivated one counts as not there."""
    bots = Bot.objects.active().filter(
        memberships__team=team, memberships__status=Member.Status.REMOVED
    )
    return list(bots.exclude(pk=sender.pk).exclude(pk=team.lead_id).distinct())
