"""Opening tasks and conversations: dormant, running nothing (SPEC §3.4)."""

from collections.abc import Mapping
from typing import Any

from cowork import conversations, locks, tasks
from cowork.models import RuntimeMode, Task
from teams.authority import BotNotFound
from teams.models import Bot, RuntimeProfile, Team
from teams.permissions import May, Principal, require
from timeline.clock import Clock
from timeline.transactions import action


@action
def open_conversation(
    bot: Bot, *, team: Team | None, title: str, by: Principal, clock: Clock, **modes: Any
) -> Task:
    """Make a dormant conversation of a bot, in a team or outside any; it is the newest now.

    `team` None takes the bot's only active persistent team, else none; `modes` are runtime_mode,
    interaction_mode and batch_inputs. Raises Forbidden, BotNotFound for a deactivated bot.
    """
    _require_opening(by, modes)
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
        **modes,
    )


@action
def open_root(
    *,
    title: str,
    runtime: RuntimeProfile,
    by: Principal,
    clock: Clock,
    bot: Bot | None = None,
    **modes: Any,
) -> Task:
    """Make a dormant root task that a profile runs; `modes` as for a conversation.

    Raises Forbidden; a runtime mode above `supervised` is for managers (SPEC §10.1).
    """
    _require_opening(by, modes)
    return tasks.create(
        kind=Task.Kind.ROOT,
        title=title,
        runtime=runtime,
        bot=bot,
        actor=by.actor,
        now=clock.now(),
        **modes,
    )


def _require_opening(by: Principal, modes: Mapping[str, Any]) -> None:
    require(by, May.OPEN_TASKS)
    if modes.get("runtime_mode", RuntimeMode.SUPERVISED) != RuntimeMode.SUPERVISED:
        require(by, May.WIDEN_MODES)


def only_team_of(bot: Bot) -> Team | None:
    """The one active persistent team that the bot is in; None for none or several."""
    led = Team.objects.filter(lead=bot)
    joined = Team.objects.filter(members__bot=bot, members__status="active")
    found = (led | joined).filter(is_active=True, is_persistent=True).distinct()[:2]
    return found[0] if len(found) == 1 else None
