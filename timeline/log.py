"""The log: events are appended to streams and read from them (SPEC §14.1).

Appended lines are written at the end of the transaction, stream by stream in key order: streams
are the last locks that an action takes, whatever rules it called in which order.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from timeline import push
from timeline.clock import latest
from timeline.event_types import CATALOGUE, EventBody
from timeline.models import Body, Event, Stream
from timeline.transactions import require_transaction

PREVIEW_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Actor:
    """Who caused an event: `kind` is agent, person, service, runtime or system."""

    kind: str
    id: str
    label: str


SYSTEM = Actor("system", "cowork", "CoWork")


@dataclass(frozen=True, slots=True)
class Line:
    stream: UUID
    payload: EventBody
    actor: Actor
    now: datetime
    text: Body | None
    subject: UUID | None


class Page:
    """The lines that one transaction appends."""

    def __init__(self) -> None:
        self._lines: dict[UUID, list[Line]] = defaultdict(list)

    def add(self, line: Line) -> None:
        self._lines[line.stream].append(line)

    def write(self) -> None:
        if not self._lines:
            return
        # The row locks are taken in key order, so numbers are given in the order of commits.
        streams = Stream.objects.select_for_update(no_key=True).filter(key__in=[*self._lines])
        events: list[Event] = []
        for stream in streams.order_by("key"):
            events += _next_events(stream, self._lines[stream.key])
        if len({event.stream_id for event in events}) < len(self._lines):
            raise Stream.DoesNotExist
        Event.objects.bulk_create(events)
        self._lines.clear()
        push.tell()


def open_stream(key: UUID, *, workspace_id: UUID) -> None:
    """Begin the timeline of a new task."""
    require_transaction()
    Stream.objects.create(key=key, workspace_id=workspace_id)


def append(
    stream: UUID,
    payload: EventBody,
    *,
    actor: Actor,
    now: datetime,
    text: Body | None = None,
    subject: UUID | None = None,
) -> None:
    """Append one event when the transaction commits.

    `text` is the row of the text that the event tells; `subject` is the id of what it tells of.
    """
    if (text is not None) and payload.text_as is None:
        raise TypeError(f"an event of type {payload.type} tells no text")
    page = require_transaction().room(Page)
    page.add(Line(stream, payload, actor, now, text, subject))


def _next_events(stream: Stream, lines: Sequence[Line]) -> list[Event]:
    """Number the lines of a locked stream and move its end."""
    at = stream.last_at
    events: list[Event] = []
    for seq, line in enumerate(lines, start=stream.last_seq + 1):
        at = latest(line.now, at)
        events.append(
            Event(
                stream=stream,
                workspace_id=stream.workspace_id,
                seq=seq,
                type=line.payload.type,
                payload=line.payload.model_dump(mode="json", by_alias=True),
                body=line.text,
                subject=line.subject,
                actor_kind=line.actor.kind,
                actor_id=line.actor.id,
                actor_label=line.actor.label,
                created_at=at,
            )
        )
    last_seq = stream.last_seq + len(lines)
    Stream.objects.filter(key=stream.key).update(last_seq=last_seq, last_at=at)
    return events


def read(stream: UUID, *, after: int = 0, limit: int = 200) -> list[Event]:
    """The events of a stream after a number, oldest first, at most `limit`, texts included."""
    rows = Event.objects.filter(stream_id=stream, seq__gt=after).select_related("body")
    return list(rows.order_by("seq")[:limit])


def last_seq(stream: UUID) -> int:
    """The newest number of a stream; 0 for one without events."""
    found = Stream.objects.filter(key=stream).values_list("last_seq", flat=True).first()
    return found or 0


def as_json(event: Event) -> dict[str, Any]:
    """An event as readers get it (docs/wire.md): its text is read from the body row."""
    payload = dict(event.payload)
    text_as = CATALOGUE[event.type].text_as
    if text_as is not None:
        text = event.body.text if event.body is not None else None
        payload[text_as] = preview(text) if text_as == "preview" else text
    if text_as == "preview":
        payload["body"] = str(event.body_id)
    return {
        "seq": event.seq,
        "id": str(event.id),
        "type": event.type,
        "actor": {"kind": event.actor_kind, "id": event.actor_id, "label": event.actor_label},
        "payload": payload,
        "created_at": wire_time(event.created_at),
    }


def preview(text: str | None) -> str | None:
    """The beginning of a text on one line, at most 200 characters."""
    if text is None:
        return None
    line = " ".join(text[: PREVIEW_LENGTH * 4].split())
    return line if len(line) <= PREVIEW_LENGTH else line[: PREVIEW_LENGTH - 1] + "…"


def wire_time(moment: datetime) -> str:
    """A time as the wire shows it: RFC 3339, UTC, microseconds, `Z`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
