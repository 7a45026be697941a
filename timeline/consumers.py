"""The live streams of tasks and workspaces (SPEC §14.4; docs/wire.md, WebSocket)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from timeline import desk, log, news, pump
from timeline.access import Seen, port
from timeline.models import Event
from timeline.news import Frame, frame
from timeline.pump import Watch
from timeline.sockets import Socket, uuid_of


@dataclass(frozen=True, slots=True)
class Bounds:
    """The numbers of the events that a stream still has."""

    oldest: int
    newest: int


class StreamSocket(Socket):
    """`/ws/tasks/<id>/?after=SEQ`: exactly the events after a number, then live ones."""

    def may_stay(self) -> Seen:
        visitor = self.visitor()
        return port().may_see_stream(visitor, uuid_of(self.named["task"]))

    async def tell(self) -> None:
        key = uuid_of(self.named["task"])
        # Join first, then read: an event appended in between is heard twice and dropped by number.
        with pump.here().stream(key, events=True) as watch:
            await self.accept()
            cursor = await self._begin()
            while True:
                if watch.newest > cursor:
                    cursor = await self._catch_up(watch, cursor)
                await watch.wait()

    async def _begin(self) -> int:
        """Say where the stream begins for this client; returns the number before its next event."""
        bounds = await desk.SOCKETS.look(self._bounds)
        if "after" not in self.query:
            after = bounds.newest
        else:
            asked = _number(self.query["after"][-1])
            if asked is None or not bounds.oldest - 1 <= asked <= bounds.newest:
                return await self._start_over(bounds)
            after = asked
        await self.send(frame(type="ready", after=after))
        return await self._replay(after) if after < bounds.newest else after

    async def _catch_up(self, watch: Watch, cursor: int) -> int:
        """Send what was heard; read what was not, or was dropped because it took too long."""
        for seq, text in watch.take():
            if seq == cursor + 1:
                await self.send(text)
                cursor = seq
        return await self._replay(cursor) if watch.newest > cursor else cursor

    async def _replay(self, cursor: int) -> int:
        """Send all that is stored after a number."""
        while True:
            frames = await desk.SOCKETS.look(partial(self._stored, cursor))
            if frames and frames[0].seq != cursor + 1:  # retention has taken some meanwhile
                return await self._start_over(await desk.SOCKETS.look(self._bounds))
            for seq, text in frames:
                await self.send(text)
                cursor = seq
            if len(frames) < news.BATCH:
                return cursor

    async def _start_over(self, bounds: Bounds) -> int:
        """Tell the client to read the lists; what is newer than they are still comes."""
        told = frame(type="resync_required", oldest=bounds.oldest, newest=bounds.newest)
        await self.send(told)
        return bounds.newest

    def _stored(self, after: int) -> Sequence[Frame]:
        self.check()
        key = uuid_of(self.named["task"])
        return news.frames_of(log.read(key, after=after, limit=news.BATCH))

    def _bounds(self) -> Bounds:
        key = uuid_of(self.named["task"])
        newest = log.last_seq(key)
        kept = Event.objects.filter(stream=key).order_by("seq").values_list("seq", flat=True)
        return Bounds(oldest=kept.first() or newest + 1, newest=newest)


class WorkspaceSocket(Socket):
    """`/ws/workspaces/<slug>/`: which tasks have news; on connect the client reads the lists."""

    def may_stay(self) -> Seen:
        visitor = self.visitor()
        return port().may_see_workspace(visitor, self.named["slug"])

    async def tell(self) -> None:
        workspace_id = await desk.SOCKETS.look(lambda: port().workspace_id(self.named["slug"]))
        async with pump.here().workspace(workspace_id) as watch:
            await self.accept()
            while True:
                for task, seq in watch.take_changed().items():
                    await self.send(frame(type="changed", task_id=str(task), seq=seq))
                await watch.wait()


def _number(text: str) -> int | None:
    """A cursor; None for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
