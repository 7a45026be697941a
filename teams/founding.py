"""Founding: workspaces, bots, teams and runtime profiles come to be, and bots are edited."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from teams import bots, members, profiles, workspaces
from teams.models import Bot, RuntimeProfile, Team, Workspace
from teams.permissions import May, Principal, require
from timeline import audit
from timeline.clock import Clock
from timeline.log import SYSTEM
from timeline.transactions import action


@action
def found_workspace(*, slug: str, name: str, clock: Clock) -> Workspace:
    """Make a workspace with its profile `external`. For the operator of the installation only."""
    now = clock.now()
    workspace = workspaces.make(slug=slug, name=name, now=now)
    audit.record(
        "workspace.found",
        workspace_id=workspace.id,
        actor=SYSTEM,
        target_kind="workspace",
        target_id=workspace.id,
        now=now,
    )
    return workspace


@action
def make_runtime(
    *,
    name: str,
    kind: str,
    config: dict[str, Any],
    is_spawnable: bool,
    by: Principal,
    clock: Clock,
) -> RuntimeProfile:
    """Make a runtime profile. Raises Forbidden, InvalidRequest, ProfileNameTaken."""
    require(by, May.MANAGE)
    workspace = workspaces.lock(by.workspace_id)
    now = clock.now()
    profile = profiles.make(
        workspace, name=name, kind=kind, config=config, is_spawnable=is_spawnable, now=now
    )
    _record("runtime.make", profile, by=by, now=now, kind=kind)
    return profile


@action
def make_bot(
    *, handle: str, display_name: str, runtime: str, by: Principal, clock: Clock, **looks: Any
) -> Bot:
    """Make a bot that runs on a named profile. Raises Forbidden, InvalidRequest, HandleTaken."""
    require(by, May.MANAGE)
    workspace = workspaces.lock(by.workspace_id)
    now = clock.now()
    bot = bots.make(
        workspace,
        handle=handle,
        display_name=display_name,
        runtime=profiles.named(workspace.id, runtime),
        now=now,
        **looks,
    )
    _record("bot.make", bot, by=by, now=now)
    return bot


@action
def edit_bot(
    handle: str,
    *,
    by: Principal,
    clock: Clock,
    runtime: str | None = None,
    is_back: bool = False,
    **changes: Any,
) -> Bot:
    """Change a bot, from its next turn on; `is_back` takes a deactivated one into use again.

    Raises NotFound, Forbidden, InvalidRequest.
    """
    require(by, May.MANAGE)
    workspaces.lock(by.workspace_id)
    bot = bots.with_handle(by.workspace_id, handle)
    now = clock.now()
    if runtime is not None:
        changes["runtime"] = profiles.named(by.workspace_id, runtime)
    changed = bots.change(bot, now=now, **changes)
    if is_back and not bot.is_active:
        bots.activate(bot, now=now)
        changed.append("active")
    if changed:
        _record("bot.edit", bot, by=by, now=now, fields=changed)
    return bot


@action
def make_team(
    *,
    name: str,
    lead: str,
    handles: Sequence[str],
    is_persistent: bool,
    is_active: bool,
    by: Principal,
    clock: Clock,
) -> Team:
    """Make a team of bots. Raises Forbidden, NotFound, InvalidRequest, AlreadyAMember."""
    require(by, May.MANAGE)
    workspace = workspaces.lock(by.workspace_id)
    now = clock.now()
    team = members.make_team(
        workspace,
        name=name,
        lead=bots.with_handle(workspace.id, lead),
        members=[bots.with_handle(workspace.id, handle) for handle in handles],
        is_persistent=is_persistent,
        is_active=is_active,
        now=now,
    )
    _record("team.make", team, by=by, now=now)
    return team


def _record(
    name: str,
    row: Bot | Team | RuntimeProfile,
    *,
    by: Principal,
    now: datetime,
    **detail: Any,
) -> None:
    audit.record(
        name,
        workspace_id=row.workspace_id,
        actor=by.actor,
        target_kind=name.partition(".")[0],
        target_id=row.id,
        now=now,
        **detail,
    )
