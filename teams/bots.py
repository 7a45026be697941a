"""Bots: made, changed, put out of use and brought back (SPEC §3.1)."""

import re
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from teams import handles
from teams.models import Bot, RuntimeProfile, Workspace
from teams.texts import many_lines, one_line
from timeline.clock import latest
from timeline.refusals import InvalidRequest, NotFound, Refusal
from timeline.transactions import require_transaction

_ICON: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class SystemBotStays(Refusal):
    """{bot} belongs to the system and can't be deleted."""

    code = "FORBIDDEN"
    status = 403


def make(
    workspace: Workspace,
    *,
    handle: str,
    display_name: str,
    runtime: RuntimeProfile,
    now: datetime,
    is_system: bool = False,
    **looks: Any,
) -> Bot:
    """Make a bot. Raises InvalidRequest, HandleTaken; the workspace is locked.

    `looks` are description, instructions, icon and colour.
    """
    require_transaction()
    values = checked(display_name=display_name, runtime=runtime, **looks)
    folded = handles.skeleton(handles.checked(handle))
    _require_profile(runtime, workspace.pk)
    if Bot.objects.filter(workspace=workspace, skeleton=folded).exists():
        raise handles.HandleTaken(handle=handle)
    return Bot.objects.create(
        workspace=workspace,
        handle=handle,
        skeleton=folded,
        is_system=is_system,
        created_at=now,
        updated_at=now,
        **values,
    )


def change(bot: Bot, *, now: datetime, **values: Any) -> list[str]:
    """Set what is given, and tell which fields are new. Applies from the bot's next turn on."""
    require_transaction()
    if "runtime" in values:
        _require_profile(values["runtime"], bot.workspace_id)
    fresh = {
        name: value for name, value in checked(**values).items() if getattr(bot, name) != value
    }
    _store(bot, now=now, **fresh)
    return sorted(fresh)


def deactivate(bot: Bot, *, now: datetime) -> None:
    """Put a bot out of use; its handle and all history stay its own. Refuses for system bots."""
    if bot.is_system:
        raise SystemBotStays(bot=bot.display_name)
    _store(bot, now=now, is_active=False, deactivated_at=now)


def activate(bot: Bot, *, now: datetime) -> None:
    """Bring a bot back. Its credentials stay revoked."""
    _store(bot, now=now, is_active=True, deactivated_at=None)


def with_handle(workspace_id: UUID, handle: str) -> Bot:
    """The bot, active or not. Raises NotFound."""
    rows = Bot.objects.select_related("runtime", "workspace")
    found = rows.filter(workspace_id=workspace_id, handle=handle).first()
    if found is None:
        raise NotFound
    return found


def checked(**values: Any) -> dict[str, Any]:
    """The fields as they are stored; refuses with InvalidRequest."""
    stored = dict(values)
    if "display_name" in stored:
        stored["display_name"] = one_line(stored["display_name"], field="display_name")
    for name in {"description", "instructions"} & stored.keys():
        stored[name] = many_lines(stored[name], field=name)
    if "icon" in stored and not _ICON.fullmatch(stored["icon"]):
        raise InvalidRequest(reason="icon: the name of an icon, such as compass.")
    if "colour" in stored and stored["colour"] not in Bot.Colour.values:
        raise InvalidRequest(reason=f"colour: one of {', '.join(Bot.Colour.values)}.")
    return stored


def _require_profile(runtime: RuntimeProfile, workspace_id: UUID) -> None:
    if runtime.workspace_id != workspace_id or not runtime.is_active:
        raise InvalidRequest(reason="runtime: there is no such profile.")


def _store(bot: Bot, *, now: datetime, **values: Any) -> None:
    require_transaction()
    if not values:
        return
    values["updated_at"] = latest(now, bot.updated_at)
    Bot.objects.filter(pk=bot.pk).update(**values)
    for name, value in values.items():
        setattr(bot, name, value)
