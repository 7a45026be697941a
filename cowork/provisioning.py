"""Provisioning: what a file describes is made, as far as it is not there yet.

Things are known by slug, username, handle, name, title and label. What exists stays as it is: a
second run changes nothing, and nothing that people have changed meanwhile is set back.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.auth import get_user_model

from cowork import conversations, credentials, locks
from cowork.blueprint import Blueprint, ConversationPlan, CredentialPlan, PersonPlan, WorkspacePlan
from cowork.models import Credential, Task
from cowork.opening import only_team_of
from teams import bots, members, people, profiles, workspaces
from teams.models import Bot, RuntimeProfile, Team, Workspace
from timeline import audit
from timeline.clock import Clock
from timeline.log import SYSTEM
from timeline.refusals import InvalidRequest
from timeline.transactions import action

Hashes = Mapping[str, str]
Row = TypeVar("Row")


def provision(plan: Blueprint, *, environment: Mapping[str, str], clock: Clock) -> dict[str, Any]:
    """Make what is missing, all or nothing, and answer with ids and with the new secrets."""
    wanted = [person for workspace in plan.workspaces for person in workspace.people]
    return _provision(plan, _hashes(wanted, environment), clock=clock)


def _hashes(wanted: list[PersonPlan], environment: Mapping[str, str]) -> Hashes:
    """The passwords of new people, hashed before the transaction, as that takes its time."""
    names = {person.username for person in wanted}
    users = get_user_model().objects.filter(username__in=names)
    known = set(users.values_list("username", flat=True))
    given = {
        person.username: password
        for person in wanted
        if person.username not in known
        and (password := person.password_in(environment)) is not None
    }
    # The hash is computed outside Python's lock, so threads halve the time on two processors.
    with ThreadPoolExecutor(max_workers=4) as pool:
        return dict(zip(given, pool.map(people.hashed, given, given.values()), strict=True))


@action
def _provision(plan: Blueprint, hashes: Hashes, *, clock: Clock) -> dict[str, Any]:
    now = clock.now()
    made = {row.slug: _workspace(row, hashes, now=now) for row in plan.workspaces}
    return {"workspaces": made}


def _workspace(plan: WorkspacePlan, hashes: Hashes, *, now: datetime) -> dict[str, Any]:
    found = Workspace.objects.filter(slug=plan.slug).first()
    workspace = found or workspaces.make(slug=plan.slug, name=plan.name, now=now)
    workspaces.lock(workspace.id)
    _people(workspace, plan.people, hashes, now=now)
    runtimes = _runtimes(workspace, plan, now=now)
    among = _bots(workspace, plan, runtimes, now=now)
    teams = _teams(workspace, plan, among, now=now)
    answer = {
        "id": str(workspace.id),
        "bots": {row.handle: str(among[row.handle].id) for row in plan.bots},
        "teams": {row.name: str(teams[row.name].id) for row in plan.teams},
        "conversations": _conversations(plan.conversations, among, teams, now=now),
        "credentials": _credentials(workspace, plan.credentials, among, now=now),
    }
    audit.record(
        "workspace.provision",
        workspace_id=workspace.id,
        actor=SYSTEM,
        target_kind="workspace",
        target_id=workspace.id,
        now=now,
        is_new=found is None,
    )
    return answer


def _people(
    workspace: Workspace, plans: list[PersonPlan], hashes: Hashes, *, now: datetime
) -> None:
    names = [plan.username for plan in plans]
    users = {row.username: row for row in get_user_model().objects.filter(username__in=names)}
    present = set(workspace.people.values_list("user__username", flat=True))
    for plan in plans:
        if plan.username in present:
            continue
        user = users.get(plan.username) or people.make_user(
            plan.username, password_hash=hashes.get(plan.username), now=now
        )
        people.make(workspace, user, role=plan.role, now=now)
        present.add(plan.username)


def _runtimes(
    workspace: Workspace, plan: WorkspacePlan, *, now: datetime
) -> dict[str, RuntimeProfile]:
    known = {row.name: row for row in workspace.runtimes.all()}
    for row in plan.runtimes:
        if row.name not in known:
            known[row.name] = profiles.make(
                workspace,
                name=row.name,
                kind=row.kind,
                config=row.config,
                is_spawnable=row.spawnable,
                now=now,
            )
    return known


def _bots(
    workspace: Workspace,
    plan: WorkspacePlan,
    runtimes: Mapping[str, RuntimeProfile],
    *,
    now: datetime,
) -> dict[str, Bot]:
    known = {bot.handle: bot for bot in workspace.bots.select_related("runtime")}
    for row in plan.bots:
        if row.handle not in known:
            known[row.handle] = bots.make(
                workspace,
                handle=row.handle,
                display_name=row.display_name,
                runtime=_named(runtimes, row.runtime, "runtime"),
                now=now,
                **row.looks,
            )
    return known


def _teams(
    workspace: Workspace, plan: WorkspacePlan, among: Mapping[str, Bot], *, now: datetime
) -> dict[str, Team]:
    known = {team.name: team for team in workspace.teams.all()}
    for row in plan.teams:
        if row.name not in known:
            known[row.name] = members.make_team(
                workspace,
                name=row.name,
                lead=_named(among, row.lead, "bot"),
                members=[_named(among, handle, "bot") for handle in row.members],
                is_persistent=row.persistent,
                is_active=row.active,
                now=now,
            )
    return known


def _conversations(
    plans: list[ConversationPlan],
    among: Mapping[str, Bot],
    teams: Mapping[str, Team],
    *,
    now: datetime,
) -> list[dict[str, str]]:
    placed = []
    for plan in plans:
        bot = _named(among, plan.bot, "bot")
        team = only_team_of(bot) if plan.team is None else _named(teams, plan.team, "team")
        placed.append((plan, bot, team))
    for team_id in sorted({team.id for _, _, team in placed if team is not None}):
        locks.lock_team(team_id)
    for bot_id in sorted({bot.id for _, bot, _ in placed}):
        locks.lock_bot(bot_id)
    return [
        {"bot": bot.handle, "title": plan.title, "task_id": _conversation(plan, bot, team, now=now)}
        for plan, bot, team in placed
    ]


def _conversation(plan: ConversationPlan, bot: Bot, team: Team | None, *, now: datetime) -> str:
    open_ones = Task.objects.filter(
        bot=bot, kind=Task.Kind.BOT_CONVERSATION, title=plan.title, archived_at__isnull=True
    )
    if plan.team is not None:
        open_ones = open_ones.filter(team=team)
    found = open_ones.order_by("-created_at", "-id").first()
    task = found or conversations.open_conversation(
        bot, team=team, title=plan.title, actor=SYSTEM, now=now
    )
    return str(task.id)


def _credentials(
    workspace: Workspace,
    plans: list[CredentialPlan],
    among: Mapping[str, Bot],
    *,
    now: datetime,
) -> dict[str, str | None]:
    """Labels and secrets of new credentials; null for those that exist, as nobody can read them."""
    live = Credential.objects.filter(workspace=workspace, revoked_at__isnull=True)
    secrets: dict[str, str | None] = dict.fromkeys(live.values_list("label", flat=True))
    for plan in plans:
        if plan.label in secrets:
            continue
        if (plan.kind == "bot") != (plan.bot is not None):
            raise InvalidRequest(
                reason=f"{plan.label}: a bot is named for kind bot, and only there."
            )
        _, secrets[plan.label] = credentials.make(
            workspace=workspace,
            kind=plan.kind,
            label=plan.label,
            bot=_named(among, plan.bot, "bot") if plan.bot is not None else None,
            now=now,
        )
    return {plan.label: secrets[plan.label] for plan in plans}


def _named(rows: Mapping[str, Row], name: str, kind: str) -> Row:
    if name not in rows:
        raise InvalidRequest(reason=f"There is no {kind} {name} in this workspace.")
    return rows[name]
