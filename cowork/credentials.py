"""Credentials and whom they let in (SPEC §2.1, §2.2).

A credential is an identity; its secrets come and go by rotation. A secret is shown once and kept
as a hash: djangorestframework-api-key's prefix, by which it is found, and SHA-512.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now
from rest_framework_api_key.crypto import KeyGenerator

from cowork.models import Credential, Secret, Task
from teams.models import Bot, Person, Workspace
from teams.permissions import Principal
from timeline.refusals import Forbidden, InvalidRequest, NotFound
from timeline.single import one_or_none
from timeline.transactions import require_transaction

USE_IS_NOTED_EVERY: Final = timedelta(minutes=1)
WORKSPACE_HEADER: Final = "X-Workspace"

_NOBODYS_HASH = KeyGenerator().hash("nobody's secret")


class LabelTaken(InvalidRequest):
    """There is a credential with the label {label} already. Choose another one, or rotate it."""


class WorkspaceNeeded(InvalidRequest):
    """You belong to several workspaces. Name one in the header X-Workspace."""


# Who calls


def authenticate_bearer(secret: str) -> Principal | None:
    """The principal whose secret this is; None for unknown, revoked and expired ones alike."""
    credential = find(secret)
    return None if credential is None else principal_of(credential)


def find(secret: str) -> Credential | None:
    """The live credential that a secret belongs to. Looks equally long for every wrong one."""
    prefix, _, rest = secret.partition(".")
    kept = _kept(prefix) if rest and "\0" not in secret else None
    known = kept.hashed_key if kept is not None else _NOBODYS_HASH
    is_right = Secret.objects.key_generator.verify(secret, known)
    return kept.credential if kept is not None and is_right else None


def _kept(prefix: str) -> Secret | None:
    """The secret with a prefix that is taken now, by the clock of the database."""
    rows = Secret.objects.select_related(
        "credential__workspace", "credential__bot", "credential__task__bot"
    )
    found = rows.filter(
        Q(expiry_date__isnull=True) | Q(expiry_date__gt=Now()),
        Q(credential__expires_at__isnull=True) | Q(credential__expires_at__gt=Now()),
        Q(credential__bot__isnull=True) | Q(credential__bot__is_active=True),
        Q(credential__task__bot__isnull=True) | Q(credential__task__bot__is_active=True),
        prefix=prefix,
        revoked=False,
        credential__revoked_at__isnull=True,
    )
    return one_or_none(found)


def principal_of(credential: Credential) -> Principal:
    """Whom a credential acts as."""
    bot = _bot_of(credential)
    return Principal(
        kind=credential.kind,  # type: ignore[arg-type]  # the same three words
        id=credential.id,
        label=bot.display_name if bot is not None else credential.label,
        workspace_id=credential.workspace_id,
        workspace_slug=credential.workspace.slug,
        bot_id=bot.id if bot is not None else None,
        bot_handle=bot.handle if bot is not None else None,
        task_id=credential.task_id,
    )


def principal_of_user(user: Any, workspace_slug: str | None) -> Principal:
    """The person that a signed-in user is in a workspace.

    Raises WorkspaceNeeded when there are several and none is named, NotFound for one that is not
    theirs, Forbidden when there is none at all.
    """
    people = roles_of(user)
    if workspace_slug is not None:
        people = [person for person in people if person.workspace.slug == workspace_slug]
        if not people:
            raise NotFound
    if not people:
        raise Forbidden
    if len(people) > 1:
        raise WorkspaceNeeded
    return principal_of_person(people[0])


def principal_of_person(person: Person) -> Principal:
    return Principal(
        kind="person",
        id=person.id,
        label=person.user.get_username(),
        workspace_id=person.workspace_id,
        workspace_slug=person.workspace.slug,
        role=person.role,
    )


def roles_of(user: Any) -> list[Person]:
    """What a user is, workspace by workspace."""
    found = Person.objects.select_related("workspace", "user").filter(user=user, is_active=True)
    return list(found.order_by("workspace__slug"))


def roles_of_person(person_id: UUID) -> list[Person]:
    """What the user behind a person is, workspace by workspace."""
    return roles_of(Person.objects.select_related("user").get(pk=person_id).user)


def use_is_stale(credential: Credential, now: datetime) -> bool:
    """Whether its last use is worth noting again."""
    return credential.last_used_at is None or now - credential.last_used_at >= USE_IS_NOTED_EVERY


# How they come and go


def make(
    *,
    workspace: Workspace,
    kind: str,
    label: str,
    bot: Bot | None = None,
    task: Task | None = None,
    made_by: Person | None = None,
    expires_at: datetime | None = None,
    now: datetime,
) -> tuple[Credential, str]:
    """Make a credential and its first secret, which nobody can read again. Raises LabelTaken."""
    require_transaction()
    live = Credential.objects.filter(workspace=workspace, revoked_at__isnull=True)
    if live.filter(label=label).exists():
        raise LabelTaken(label=label)
    credential = Credential.objects.create(
        workspace=workspace,
        kind=kind,
        label=label,
        bot=bot,
        task=task,
        made_by=made_by,
        expires_at=expires_at,
        created_at=now,
    )
    return credential, new_secret(credential)


def new_secret(credential: Credential) -> str:
    """One more secret of a credential."""
    require_transaction()
    _, secret = Secret.objects.create_key(credential=credential, name=credential.label[:50])
    return str(secret)


def let_run_out(credential: Credential, *, at: datetime) -> None:
    """Let the present secrets of a credential end at a time, unless they end before."""
    require_transaction()
    live = Secret.objects.filter(credential=credential, revoked=False)
    live.filter(Q(expiry_date__isnull=True) | Q(expiry_date__gt=at)).update(expiry_date=at)


def revoke(credential: Credential, *, now: datetime) -> None:
    """End a credential for good; a second time changes nothing."""
    _revoke([credential.pk], now=now)


def revoke_of_task(task: Task, *, now: datetime) -> None:
    """A task's credentials die with it."""
    _revoke_where(Q(task=task), now=now)


def revoke_of_bot(bot: Bot, *, now: datetime) -> None:
    """A deactivated bot calls no more, as itself or as one of its tasks."""
    _revoke_where(Q(bot=bot) | Q(task__bot=bot), now=now)


def _revoke_where(whose: Q, *, now: datetime) -> None:
    live = Credential.objects.filter(whose, revoked_at__isnull=True)
    _revoke(list(live.values_list("pk", flat=True)), now=now)


def _revoke(ids: list[UUID], *, now: datetime) -> None:
    require_transaction()
    Credential.objects.filter(pk__in=ids, revoked_at__isnull=True).update(revoked_at=now)
    Secret.objects.filter(credential__in=ids, revoked=False).update(revoked=True)


def _bot_of(credential: Credential) -> Bot | None:
    return credential.bot if credential.task is None else credential.task.bot
