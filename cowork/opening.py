"""Opening tasks and conversations: dormant, running nothing (SPEC §3.4)."""

from uuid import UUID

from cowork import conversations, locks, tasks
from cowork.models import Task
from teams.authority import BotNotFound
from teams.models import Bot, RuntimeProfile, Team
from teams.permissions import May, Principal, require
from timeline.clock import Clock
from timeline.refusals import InvalidRequest
from timeline.transactions import action


@action
def open_conversation(
    bot: Bot, *, team: Team | None, title: str, by: Principal, clock: Clock
) -> Task:
    """Make a dormant conversation of a bot, in a team or outside any; it is the newest now.

    `team` None takes the bot's only active persistent team, else none. Raises Forbidden,
    BotNotFound for a deactivated bot.
    """
    require(by, May.OPEN_TASKS)
    chosen = team or only_team_of(bot)
    if chosen is not None:
        locks.lock_team(chosen.id)
    locked = locks.lock_bot(bot.id)
    if not locked.is_active:
        raise BotNotFound(name=bot.handle)
    return conversations.open_conversation(
        locked,
        team=chosen,
        title=title or locked.display_name,
        actor=by.actor,
        now=clock.now(),
    )


@action
def open_root(
    *,
    workspace_id: UUID,
    title: str,
    runtime: RuntimeProfile,
    runtime_mode: str,
    interaction_mode: str,
    batch_inputs: bool,
    by: Principal,
    clock: Clock,
    bot: Bot | None = None,
) -> Task:
    """Make a dormant root task. Raises Forbidden; a mode above `supervised` is for managers."""
    require(by, May.OPEN_TASKS)
    if runtime_mode != "supervised":
        require(by, May.WIDEN_MODES)
    if runtime.workspace_id != workspace_id or not runtime.is_active:
        raise InvalidRequest(reason="runtime: there is no such profile.")
    return tasks.create(
        kind=Task.Kind.ROOT,
        title=title,
        runtime=runtime,
        bot=bot,
        runtime_mode=runtime_mode,
        interaction_mode=interaction_mode,
        batch_inputs=batch_inputs,
        actor=by.actor,
        now=clock.now(),
    )


def only_team_of(bot: Bot) -> Team | None:
    """The one active persistent team that the bot is in; None for none or several."""
    led = Team.objects.filter(lead=bot)
    joined = Team.objects.filter(members__bot=bot, members__status="active")
    found = (led | joined).filter(is_active=True, is_persistent=True).distinct()[:2]
    return found[0] if len(found) == 1 else None
