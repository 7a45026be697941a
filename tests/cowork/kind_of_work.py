"""Kinds of outbox work for tests: what a handler does is told by the test."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from cowork import kinds, outbox
from cowork.kinds import DONE, Answer
from cowork.models import OutboxEntry
from timeline.clock import ManualClock
from timeline.ids import new_id
from timeline.transactions import action


class Note(BaseModel):
    """The payload: a word that tells entries apart."""

    model_config = ConfigDict(extra="forbid")

    word: str = ""


@dataclass
class Work:
    """Registered kinds, what ran, and how the handlers behave."""

    clock: ManualClock
    ran: list[str] = field(default_factory=list)
    ids: list[UUID] = field(default_factory=list)
    parked: list[tuple[UUID, int, str]] = field(default_factory=list)
    inside: Callable[[OutboxEntry, Any, datetime], Answer] = lambda _entry, _result, _now: DONE
    outside: Callable[[OutboxEntry], Any] = lambda _entry: None

    def register(self, name: str = "test-work", **options: Any) -> None:
        def outside(entry: OutboxEntry) -> Any:
            self.ran.append(entry.payload["word"])
            self.ids.append(entry.id)
            return self.outside(entry)

        def inside(entry: OutboxEntry, result: Any, now: datetime) -> Answer:
            return self.inside(entry, result, now)

        def on_parked(entry: OutboxEntry, error: str, _now: datetime) -> None:
            self.parked.append((entry.id, entry.attempts, error))

        kinds.KINDS[name] = kinds.Kind(
            name=name,
            payload=Note,
            outside=outside,
            inside=inside,
            on_parked=on_parked,
            **options,
        )

    @action
    def owe(
        self,
        word: str = "",
        *,
        target: UUID,
        kind: str = "test-work",
        after: float | None = None,
        **options: Any,
    ) -> OutboxEntry:
        now = self.clock.now()
        return outbox.enqueue(
            kind,
            target=target,
            workspace_id=options.pop("workspace_id", WORKSPACE),
            payload=Note(word=word),
            now=now,
            not_before=None if after is None else now + timedelta(seconds=after),
            **options,
        )

    @action
    def wake(self, target: UUID) -> None:
        outbox.wake(target, now=self.clock.now())


WORKSPACE = new_id()
