"""The kinds of outbox work: one table, filled by the apps that own the handlers (SPEC §8.7).

A handler has two halves. `outside` runs without a transaction, may be slow, and runs at least once.
`inside` writes rows; the drain completes the entry in the same transaction (ARCHITECTURE, rule 8).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from cowork.models import OutboxEntry


@dataclass(frozen=True, slots=True)
class Done:
    """The promise is kept; the entry goes."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet, and no attempt is counted: again when its target is woken, or at `until`."""

    until: datetime | None = None


DONE = Done()
WAIT = Wait()
Answer = Done | Wait

Outside = Callable[[OutboxEntry], Any]
Inside = Callable[[OutboxEntry, Any, datetime], Answer]
OnParked = Callable[[OutboxEntry, str, datetime], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its payload's schema, its handler, and how it stands to its target."""

    name: str
    payload: type[BaseModel]
    inside: Inside
    outside: Outside | None = None
    revives: bool = False  # starts a task again: goes when its target is stopped or ends
    outlives: bool = False  # stays although its target is gone
    on_parked: OnParked | None = None


KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Fill the table; called by the `apps.py` of the app that owns the handler."""
    if KINDS.setdefault(kind.name, kind) is not kind:
        raise ValueError(f"the kind {kind.name} is registered twice")
