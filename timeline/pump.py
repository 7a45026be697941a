"""The pump: one in a process reads what was committed and hands it to everybody who watches.

It looks which of the watched streams have news, reads new events once for all sockets of a stream
and encodes each once. Whoever is too slow loses frames, not events: it is told how far the stream
is and reads the rest from its own place (ARCHITECTURE, rule 5).
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import Error

from timeline import commits, desk, news
from timeline.clock import Clock, system_clock
from timeline.news import Frame

logger = logging.getLogger(__name__)

CAPACITY = 500  # frames that wait for one socket
SPACING = 0.005  # seconds between looks, at least
REST = 8  # and so many times as long as the last look took: it costs a ninth of a core at most
RETRY_AFTER = 0.5


class Watch:
    """What one listener hears."""

    def __init__(self, *, capacity: int = 0) -> None:
        self._capacity = capacity
        self._frames: deque[Frame] = deque()
        self._changed: dict[UUID, int] = {}
        self._heard = asyncio.Event()
        self.newest = 0

    @property
    def wants_events(self) -> bool:
        return self._capacity > 0

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until something was heard; False when the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            return False
        self._heard.clear()
        return True

    def wake(self) -> None:
        self._heard.set()

    def tell(self, newest: int, frames: Sequence[Frame]) -> None:
        """The stream is at a number; the frames lead up to it, or there are none."""
        self.newest = max(self.newest, newest)
        if self.wants_events:
            self._frames.extend(frames)
        if len(self._frames) > self._capacity:
            self._frames.clear()
        self.wake()

    def tell_changed(self, changed: Mapping[UUID, int]) -> None:
        """Streams of the workspace are at these numbers; of each the newest is kept."""
        self._changed.update(changed)
        self.wake()

    def take(self) -> list[Frame]:
        frames = list(self._frames)
        self._frames.clear()
        return frames

    def take_changed(self) -> dict[UUID, int]:
        changed, self._changed = self._changed, {}
        return changed


@dataclass
class Watched:
    """A stream that is watched, and how far it has been told."""

    watches: set[Watch] = field(default_factory=set)
    known: int | None = None


@dataclass
class WatchedWorkspace:
    """A workspace that is watched: where its streams of the last seconds were at the last look."""

    watches: set[Watch] = field(default_factory=set)
    known: dict[UUID, int] | None = None
    since: datetime | None = None
    is_known: asyncio.Event = field(default_factory=asyncio.Event)


class Pump:
    """All who watch in one event loop. It runs while there is somebody."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streams: dict[UUID, Watched] = {}
        self._workspaces: dict[UUID, WatchedWorkspace] = {}
        self._news = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    @contextmanager
    def stream(self, key: UUID, *, events: bool) -> Iterator[Watch]:
        """Watch a stream. Join first, then read: what comes in between is heard twice."""
        watch = Watch(capacity=CAPACITY if events else 0)
        watched = self._streams.setdefault(key, Watched())
        watched.watches.add(watch)
        self._begin()
        try:
            yield watch
        finally:
            watched.watches.discard(watch)
            if not watched.watches and self._streams.get(key) is watched:
                del self._streams[key]
            self._end()

    @asynccontextmanager
    async def workspace(self, workspace_id: UUID) -> AsyncIterator[Watch]:
        """Watch all streams of a workspace; entered once nothing can be missed any more."""
        watch = Watch()
        watched = self._workspaces.setdefault(workspace_id, WatchedWorkspace())
        watched.watches.add(watch)
        self._begin()
        try:
            await watched.is_known.wait()
            yield watch
        finally:
            watched.watches.discard(watch)
            if not watched.watches and self._workspaces.get(workspace_id) is watched:
                del self._workspaces[workspace_id]
            self._end()

    def _begin(self) -> None:
        self._news.set()  # somebody new has to learn where its stream is
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())
            self._running.add_done_callback(self._begin_again)

    def _begin_again(self, ended: "asyncio.Task[None]") -> None:
        """Nobody may wait for a pump that stands still because of a bug."""
        if ended.cancelled() or ended is not self._running:
            return
        logger.error("the pump broke down; beginning again", exc_info=ended.exception())
        self._running = None
        ended.get_loop().call_later(RETRY_AFTER, self._begin_if_watched)

    def _begin_if_watched(self) -> None:
        if self._streams or self._workspaces:
            self._begin()

    def _end(self) -> None:
        if not self._streams and not self._workspaces and self._running is not None:
            self._running.cancel()
            self._running = None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()

        def hear() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._news.set)

        unsubscribe = commits.subscribe(hear)
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                began = loop.time()
                try:
                    await self._look()
                except Error:
                    logger.warning("the pump can't look at the database", exc_info=True)
                    self._news.set()
                    await asyncio.sleep(RETRY_AFTER)
                await asyncio.sleep(max(SPACING, REST * (loop.time() - began)))
        finally:
            unsubscribe()

    async def _look(self) -> None:
        if self._streams:
            known = {key: watched.known for key, watched in self._streams.items()}
            heard = {
                key
                for key, watched in self._streams.items()
                if any(watch.wants_events for watch in watched.watches)
            }
            for key, seq, frames in await desk.PUMP.look(partial(news.news_of, known, heard)):
                self._tell(key, seq, frames)
        for workspace_id, watched in list(self._workspaces.items()):
            look = partial(self._changed_in, workspace_id, watched.since)
            since, found = await desk.PUMP.look(look)
            self._tell_changed(watched, since, found)

    def _changed_in(
        self, workspace_id: UUID, since: datetime | None
    ) -> tuple[datetime | None, dict[UUID, int]]:
        return news.changed_in(workspace_id, since=since, now=self._clock.now())

    def _tell(self, key: UUID, seq: int, frames: Sequence[Frame]) -> None:
        watched = self._streams.get(key)
        if watched is None:
            return
        watched.known = seq
        for watch in watched.watches:
            watch.tell(seq, frames)
        if len(frames) == news.BATCH:
            self._news.set()  # there may be more

    def _tell_changed(
        self, watched: WatchedWorkspace, since: datetime | None, found: dict[UUID, int]
    ) -> None:
        known = watched.known
        watched.known, watched.since = found, since
        watched.is_known.set()
        if known is None:
            return
        changed = {key: seq for key, seq in found.items() if known.get(key) != seq}
        if changed:
            for watch in watched.watches:
                watch.tell_changed(changed)


_pumps: "WeakKeyDictionary[asyncio.AbstractEventLoop, Pump]" = WeakKeyDictionary()


def here() -> Pump:
    """The pump of the running event loop; a server has one."""
    loop = asyncio.get_running_loop()
    if loop not in _pumps:
        _pumps[loop] = Pump(system_clock)
    return _pumps[loop]
