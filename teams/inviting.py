"""Inviting: a person gets a name, a password and a role in a workspace (SPEC §2.7)."""

from teams import people, workspaces
from teams.models import Person
from teams.permissions import May, Principal, require
from timeline import audit
from timeline.clock import Clock
from timeline.transactions import action


def invite(*, username: str, password: str, role: str, by: Principal, clock: Clock) -> Person:
    """Make a user with a role in the caller's workspace. Raises Forbidden, InvalidRequest.

    A name that is in use is refused, whoever bears it: a manager has no say over other people's
    passwords or workspaces.
    """
    require(by, May.MANAGE)
    return _invite(username, people.hashed(username, password), role=role, by=by, clock=clock)


@action
def _invite(username: str, password_hash: str, *, role: str, by: Principal, clock: Clock) -> Person:
    workspace = workspaces.lock(by.workspace_id)
    now = clock.now()
    user = people.make_user(username, password_hash=password_hash, now=now)
    person = people.make(workspace, user, role=role, now=now)
    audit.record(
        "person.invite",
        workspace_id=workspace.id,
        actor=by.actor,
        target_kind="person",
        target_id=person.id,
        now=now,
        role=role,
    )
    return person
