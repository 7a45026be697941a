"""People: Django users with a role in a workspace (SPEC §1, §2.7)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model, password_validation
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError

from teams.models import Person, Workspace
from timeline.refusals import InvalidRequest
from timeline.transactions import require_transaction


class UsernameTaken(InvalidRequest):
    """The username {username} is taken. Choose another one."""


def hashed(username: str, password: str) -> str:
    """The password as it is stored, if Django's validators find it good enough.

    Takes a while by design: call it outside the transaction. Refuses with InvalidRequest.
    """
    try:
        password_validation.validate_password(password, get_user_model()(username=username))
    except ValidationError as error:
        told = [str(message) for message in error.messages]
        raise InvalidRequest(
            reason=f"password: {' '.join(told)}",
            errors=[{"field": "password", "message": message} for message in told],
        ) from error
    return make_password(password)


def make_user(username: str, *, password_hash: str | None, now: datetime) -> Any:
    """Make a user, without a usable password when none is given. Raises UsernameTaken."""
    require_transaction()
    users = get_user_model()
    name = users.normalize_username(username)
    user = users(username=name, password=password_hash or make_password(None), date_joined=now)
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise InvalidRequest(
            reason="username: 1 to 150 letters, digits and @ . + - _.",
            errors=[{"field": "username", "message": "not a username"}],
        ) from error
    # Names that differ in case only could be taken for one another.
    if users.objects.filter(username__iexact=name).exists():
        raise UsernameTaken(username=name)
    user.save(force_insert=True)
    return user


def make(workspace: Workspace, user: Any, *, role: str, now: datetime) -> Person:
    """Give a user a role in a workspace where they have none."""
    require_transaction()
    if role not in Person.Role.values:
        raise InvalidRequest(reason=f"role: one of {', '.join(Person.Role.values)}.")
    return Person.objects.create(workspace=workspace, user=user, role=role, created_at=now)


def of_username(workspace_id: UUID, username: str) -> Person | None:
    """The person of this name in a workspace."""
    rows = Person.objects.select_related("user", "workspace")
    return rows.filter(workspace_id=workspace_id, user__username=username).first()
