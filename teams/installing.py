"""Installing: what an empty installation begins with (SPEC §16.1)."""

from typing import Final

from teams import people, workspaces
from teams.models import Person, Workspace
from timeline import audit
from timeline.clock import Clock
from timeline.log import SYSTEM
from timeline.transactions import action

MAIN: Final = "main"
OWNER: Final = "owner"


@action
def install(*, clock: Clock) -> bool:
    """Make workspace `main` and person `owner`, unless there is any workspace already."""
    if Workspace.objects.exists():
        return False
    now = clock.now()
    workspace = workspaces.make(slug=MAIN, name="Main", now=now)
    user = people.make_user(OWNER, password_hash=None, now=now)
    user.is_staff = user.is_superuser = True
    user.save(update_fields=["is_staff", "is_superuser"])
    person = people.make(workspace, user, role=Person.Role.MANAGER, now=now)
    audit.record(
        "installation.begin",
        workspace_id=workspace.id,
        actor=SYSTEM,
        target_kind="person",
        target_id=person.id,
        now=now,
    )
    return True
