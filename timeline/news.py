"""News: what was committed since somebody looked, as sockets get it.

Read by the pump for everybody who watches, and by a socket that catches up.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from timeline import log
from timeline.models import Event, Stream

BATCH = 200  # events that are read at once
# An event's time is taken before its commit, so a look goes back by the longest transaction.
OVERLAP = timedelta(seconds=10)


class Frame(NamedTuple):
    """An event as it is sent."""

    seq: int
    text: str


def frames_of(events: Iterable[Event]) -> list[Frame]:
    """Events as they are sent (docs/wire.md, WebSocket)."""
    return [Frame(event.seq, frame(type="event", event=log.as_json(event))) for event in events]


def frame(**fields: object) -> str:
    """One frame of a socket."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def news_of(
    known: Mapping[UUID, int | None], heard: set[UUID]
) -> list[tuple[UUID, int, list[Frame]]]:
    """The streams that are further than is known, each with what is new as far as it is read."""
    found: list[tuple[UUID, int, list[Frame]]] = []
    for key, newest in Stream.objects.filter(key__in=known).values_list("key", "last_seq"):
        before = known[key]
        if before is not None and newest <= before:
            continue
        frames: list[Frame] = []
        if before is not None and key in heard:
            frames = frames_of(log.read(key, after=before, limit=BATCH))
        found.append((key, frames[-1].seq if frames else newest, frames))
    return found


def changed_in(
    workspace_id: UUID, *, since: datetime | None, now: datetime
) -> tuple[datetime | None, dict[UUID, int]]:
    """The streams of a workspace that were written about or after a time, and the newest time."""
    streams = Stream.objects.filter(workspace_id=workspace_id)
    if since is None:
        newest = streams.filter(last_at__isnull=False).order_by("-last_at").first()
        since = newest.last_at if newest is not None else None
    # A clock that was set back must not hide what is written from now on.
    earliest = min(since or now, now) - OVERLAP
    rows = list(streams.filter(last_at__gte=earliest).values_list("key", "last_seq", "last_at"))
    found = {key: seq for key, seq, _ in rows}
    return max((at for _, _, at in rows if at is not None), default=since), found
