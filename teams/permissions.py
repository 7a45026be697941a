"""Who may do what: the one table that every entry point uses (SPEC §2.7)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from uuid import UUID

from timeline.log import Actor
from timeline.refusals import Forbidden


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever calls, as its credential or session says (SPEC §2.1, §2.2).

    `id` is the credential's, the person's or, for a hosted runtime, the profile's id. `bot_id` is
    set for a credential of a bot, `task_id` for one of a task, `role` for a person.
    """

    kind: Literal["bot", "task", "service", "person", "runtime", "system"]
    id: UUID
    label: str
    workspace_id: UUID
    workspace_slug: str
    role: str | None = None
    bot_id: UUID | None = None
    bot_handle: str | None = None
    task_id: UUID | None = None

    is_authenticated = True  # what Django REST framework asks

    @property
    def claimer(self) -> str:
        """Whose a turn is that this principal claims."""
        return f"{'runtime' if self.kind == 'runtime' else 'credential'}:{self.id}"

    @property
    def actor(self) -> Actor:
        """The actor of events that this principal causes."""
        kind = "agent" if self.kind in ("bot", "task") else self.kind
        return Actor(kind, str(self.id), self.label)


class May(StrEnum):
    """What can be permitted. Agents are judged by their tasks as well: see cowork and messaging."""

    READ = "read"  # the workspace
    MARK_SEEN = "mark_seen"
    ACT_AS_AGENT = "act_as_agent"  # send, claim, report: for its own tasks
    FOLLOW_UP = "follow_up"
    OPEN_TASKS = "open_tasks"
    COMPLETE = "complete"
    INTERRUPT = "interrupt"  # pause, resume, stop
    EDIT_TASKS = "edit_tasks"  # title, archived, narrowing a mode
    HANDLE_RECEIPTS = "handle_receipts"  # retry, release, discard, quarantine
    READ_OUTBOX = "read_outbox"
    HANDLE_OUTBOX = "handle_outbox"
    MANAGE = "manage"  # bots, teams, members, people, credentials, runtimes, audit
    WIDEN_MODES = "widen_modes"


_VIEWER = frozenset({May.READ, May.MARK_SEEN})
_OPERATOR = _VIEWER | {
    May.FOLLOW_UP,
    May.OPEN_TASKS,
    May.COMPLETE,
    May.INTERRUPT,
    May.EDIT_TASKS,
    May.HANDLE_RECEIPTS,
    May.READ_OUTBOX,
    May.HANDLE_OUTBOX,
}
_MANAGER = _OPERATOR | {May.MANAGE, May.WIDEN_MODES}
_AGENT = frozenset({May.ACT_AS_AGENT})
_SERVICE = frozenset({May.READ, May.FOLLOW_UP, May.OPEN_TASKS, May.INTERRUPT, May.READ_OUTBOX})

_TABLE: dict[str, frozenset[May]] = {
    "bot": _AGENT,
    "task": _AGENT,
    "runtime": _AGENT,
    "service": _SERVICE,
    "system": frozenset(May),
    "viewer": _VIEWER,
    "operator": _OPERATOR,
    "manager": _MANAGER,
}


def may(principal: Principal, permission: May) -> bool:
    """Whether the table permits it to this kind of principal, or to this role of a person."""
    row = principal.role if principal.kind == "person" else principal.kind
    return permission in _TABLE.get(row or "", frozenset())


def require(principal: Principal, permission: May) -> None:
    """Raise Forbidden unless the table permits it."""
    if not may(principal, permission):
        raise Forbidden
