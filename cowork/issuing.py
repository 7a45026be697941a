"""Issuing credentials: a secret shown once, rotated with a grace, revoked (SPEC §2.1)."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from cowork import credentials
from cowork.models import Credential, Task
from teams import workspaces
from teams.models import Bot, Person, Workspace
from teams.permissions import May, Principal, require
from timeline import audit
from timeline.clock import Clock, latest
from timeline.refusals import InvalidRequest, NotFound, Refusal
from timeline.transactions import action


class Revoked(Refusal):
    """This credential is revoked. Issue a new one."""

    code = "INVALID_TRANSITION"
    status = 409


@dataclass(frozen=True, slots=True)
class Issued:
    """A credential and the secret that is shown this once."""

    credential: Credential
    secret: str = field(repr=False)


@action
def issue(
    *,
    kind: str,
    label: str,
    bot: str | None,
    task_id: UUID | None,
    expires_in: timedelta | None,
    by: Principal,
    clock: Clock,
) -> Issued:
    """Make a credential of the caller's workspace; it leaves every other one alive.

    Raises Forbidden, NotFound for a bot or a task that is not there, LabelTaken.
    """
    require(by, May.MANAGE)
    workspace = workspaces.lock(by.workspace_id)
    acting_bot, acting_task = _subject(kind, bot, task_id, workspace)
    now = clock.now()
    made, secret = credentials.make(
        workspace=workspace,
        kind=kind,
        label=label,
        bot=acting_bot,
        task=acting_task,
        made_by=Person.objects.filter(pk=by.id).first() if by.kind == "person" else None,
        expires_at=now + expires_in if expires_in is not None else None,
        now=now,
    )
    _record("credential.issue", made, by=by, now=now)
    return Issued(made, secret)


@action
def rotate(credential_id: UUID, *, grace: timedelta, by: Principal, clock: Clock) -> Issued:
    """Give a credential a new secret; the present ones are taken until the grace is over.

    Raises NotFound, Forbidden, Revoked.
    """
    credential = _locked(credential_id, by)
    if credential.revoked_at is not None:
        raise Revoked
    now = clock.now()
    credentials.let_run_out(credential, at=now + grace)
    secret = credentials.new_secret(credential)
    _record("credential.rotate", credential, by=by, now=now)
    return Issued(credential, secret)


@action
def revoke(credential_id: UUID, *, by: Principal, clock: Clock) -> Credential:
    """End a credential and all its secrets; one that is revoked stays as it is.

    Raises NotFound, Forbidden.
    """
    credential = _locked(credential_id, by)
    if credential.revoked_at is None:
        now = latest(clock.now(), credential.created_at)
        credentials.revoke(credential, now=now)
        credential.revoked_at = now
        _record("credential.revoke", credential, by=by, now=now)
    return credential


@action
def note_use(credential: Credential, *, clock: Clock) -> None:
    """Remember that a credential was used."""
    now = clock.now()
    Credential.objects.filter(pk=credential.pk).update(last_used_at=now)


def _subject(
    kind: str, bot: str | None, task_id: UUID | None, workspace: Workspace
) -> tuple[Bot | None, Task | None]:
    """Whom a credential of this kind acts as, and nobody besides."""
    wanted = {"bot": bot is not None, "task": task_id is not None}
    if any(is_named != (kind == name) for name, is_named in wanted.items()):
        raise InvalidRequest(
            reason="A credential of kind bot names a bot, one of kind task a task, one of kind "
            "service neither."
        )
    if bot is not None:
        found = Bot.objects.active().filter(workspace=workspace, handle=bot).first()
        if found is None:
            raise NotFound
        return found, None
    if task_id is not None:
        task = Task.objects.filter(workspace=workspace, pk=task_id).first()
        if task is None:
            raise NotFound
        return None, task
    return None, None


def _locked(credential_id: UUID, by: Principal) -> Credential:
    rows = Credential.objects.select_for_update(no_key=True).filter(workspace_id=by.workspace_id)
    found = rows.filter(pk=credential_id).first()
    if found is None:
        raise NotFound
    require(by, May.MANAGE)
    return found


def _record(action_name: str, credential: Credential, *, by: Principal, now: datetime) -> None:
    audit.record(
        action_name,
        workspace_id=credential.workspace_id,
        actor=by.actor,
        target_kind="credential",
        target_id=credential.id,
        now=now,
        kind=credential.kind,
    )
